import { useCallback, useEffect, useState } from 'react';
import { type ChatStatus, chatStatus, listLanguages } from '../api/catalog';
import { asFailure, type Failure } from '../api/http';
import { watchPools } from '../api/pools';
import type { KnativeService } from '../api/services';
import type { Language, PoolStatus } from '../api/types';
import { useKnativeServices } from './useKnativeServices';

const catalogMs = 30_000;

export interface Platform {
  languages: Language[];
  chat: ChatStatus | null;
  pools: PoolStatus[] | null;
  services: KnativeService[];
  /** Why the server cannot be used right now, or null. */
  failure: Failure | null;
  /** Tries to reach the server at once. */
  reconnect(): void;
}

/** What the server offers and how its pools stand, kept current while the page is seen. */
export function usePlatform(): Platform {
  const [languages, setLanguages] = useState<Language[]>([]);
  const [chat, setChat] = useState<ChatStatus | null>(null);
  const [pools, setPools] = useState<PoolStatus[] | null>(null);
  const [catalogFailure, setCatalogFailure] = useState<Failure | null>(null);
  const [poolFailure, setPoolFailure] = useState<Failure | null>(null);
  const [attempt, setAttempt] = useState(0);
  const visible = useVisible();
  const reconnect = useCallback(() => setAttempt((n) => n + 1), []);
  const lost = poolFailure !== null;
  const services = useKnativeServices(visible && !lost);
  const tick = useTick(visible ? catalogMs : null);

  useEffect(() => {
    // Asked again once the connection is back and now and then: a model may have
    // been connected in the meantime.
    if (lost) return;
    const abort = new AbortController();
    const load = async () => {
      try {
        const [offered, status] = await Promise.all([
          listLanguages(abort.signal),
          chatStatus(abort.signal),
        ]);
        setLanguages((old) => (same(old, offered) ? old : offered));
        setChat(status);
        setCatalogFailure(null);
      } catch (error) {
        if (!abort.signal.aborted) setCatalogFailure(asFailure(error, 'unreachable'));
      }
    };
    void load();
    return () => abort.abort();
  }, [attempt, lost, tick]);

  useEffect(() => {
    // A page in the background holds no connection: browsers allow few per server.
    if (!visible) return;
    const abort = new AbortController();
    void watchPools((news) => {
      if (news.type === 'pools') setPools(news.pools);
      else setPools(null);
      setPoolFailure(news.type === 'lost' ? news.failure : null);
    }, abort.signal);
    return () => abort.abort();
  }, [attempt, visible]);

  const failure = poolFailure ?? catalogFailure;
  return { languages, chat, pools, services, failure, reconnect };
}

/** Keeps what depends on the list from being drawn anew for nothing. */
function same(a: Language[], b: Language[]): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function useTick(ms: number | null): number {
  const [tick, setTick] = useState(0);
  useEffect(() => {
    if (ms === null) return;
    const timer = setInterval(() => setTick((n) => n + 1), ms);
    return () => clearInterval(timer);
  }, [ms]);
  return tick;
}

function useVisible(): boolean {
  const [visible, setVisible] = useState(() => !document.hidden);
  useEffect(() => {
    const update = () => setVisible(!document.hidden);
    document.addEventListener('visibilitychange', update);
    return () => document.removeEventListener('visibilitychange', update);
  }, []);
  return visible;
}
