import { asFailure, call, type Failure, type Fetch } from './http';
import { readEvents } from './sse';
import type { PoolStatus } from './types';

/** What is known about the pools, and whether it is known right now. */
export type PoolNews =
  | { type: 'pools'; pools: PoolStatus[] }
  /** The server offers no pool state. It is not asked again. */
  | { type: 'absent' }
  | { type: 'lost'; failure: Failure };

const silenceMs = 45_000;
const firstRetryMs = 500;
const lastRetryMs = 10_000;

/**
 * Follows the pools' state until the signal ends it, and reconnects, ever more
 * slowly, when the stream is lost.
 */
export async function watchPools(
  tell: (news: PoolNews) => void,
  signal: AbortSignal,
  fetch: Fetch = globalThis.fetch,
  wait: (ms: number, signal: AbortSignal) => Promise<void> = sleep,
): Promise<void> {
  let retryMs = firstRetryMs;
  while (!signal.aborted) {
    let failure: Failure = { kind: 'broken', detail: 'the stream of pool states ended' };
    try {
      for await (const pools of snapshots(fetch, signal)) {
        retryMs = firstRetryMs;
        tell({ type: 'pools', pools });
      }
    } catch (error) {
      failure = asFailure(error, 'broken');
    }
    if (signal.aborted) return;
    if (failure.kind === 'refused' && [404, 405, 501].includes(failure.status)) {
      tell({ type: 'absent' });
      return;
    }
    tell({ type: 'lost', failure });
    await wait(retryMs, signal);
    retryMs = Math.min(2 * retryMs, lastRetryMs);
  }
}

async function* snapshots(fetch: Fetch, signal: AbortSignal): AsyncGenerator<PoolStatus[]> {
  const response = await call(fetch, '/v1/pools', {
    headers: { Accept: 'text/event-stream' },
    signal,
  });
  if (!response.body) return;
  for await (const { event, data } of readEvents(response.body, silenceMs)) {
    if (event !== 'pools') continue;
    const { pools } = JSON.parse(data) as { pools: PoolStatus[] | null };
    yield pools ?? [];
  }
}

/** Waits, or returns at once when the signal ends the wait. */
function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done);
  });
}
