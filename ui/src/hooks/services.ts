import { createContext, useContext, useSyncExternalStore } from 'react';
import type { Language } from '../api/types';
import type { Run, RunStore } from '../run/store';

/** What code blocks need, however deep in a text they stand. */
export interface Services {
  runs: RunStore;
  languages: Language[];
  /** Tells people who do not see the page. */
  announce(text: string): void;
}

const context = createContext<Services | null>(null);

export const ServicesProvider = context.Provider;

export function useServices(): Services {
  const services = useContext(context);
  if (!services) throw new Error('useServices is used outside of its provider');
  return services;
}

export function useRun(key: string): Run | undefined {
  const { runs } = useServices();
  return useSyncExternalStore(runs.subscribe, () => runs.get(key));
}
