import { useEffect, useState } from 'react';
import { type KnativeService, listServices, nextListing } from '../api/services';

/**
 * The platform's Knative Services while active, and none while they are not
 * known: they are an extra, and their absence is no failure of the page.
 */
export function useKnativeServices(active: boolean): KnativeService[] {
  const [services, setServices] = useState<KnativeService[]>([]);
  useEffect(() => {
    if (!active) return;
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const load = async () => {
      const found = await listServices(abort.signal).catch(() => []);
      if (abort.signal.aborted) return;
      setServices(found);
      timer = setTimeout(() => void load(), nextListing(found));
    };
    void load();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [active]);
  return services;
}
