import { execute, type RunEvent } from '../api/execute';
import type { ExecutionRequest } from '../api/types';
import { freshRun, reduce, type RunState } from './state';

/** Output is drawn at most this often. */
const batchMs = 60;

export interface Run {
  state: RunState;
  startedAt: number;
  endedAt: number | null;
  language: string;
}

/**
 * The runs of the page, by the place of their code. They live apart from the
 * components that show them, so that a message that is drawn anew keeps its
 * outputs.
 */
export class RunStore {
  private runs = new Map<string, Run>();
  private aborts = new Map<string, AbortController>();
  private listeners = new Set<() => void>();

  get(key: string): Run | undefined {
    return this.runs.get(key);
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** Runs the request in place of what ran under this key, and resolves when it has ended. */
  async start(key: string, request: ExecutionRequest): Promise<void> {
    this.stop(key);
    const abort = new AbortController();
    this.aborts.set(key, abort);
    this.runs.set(key, {
      state: freshRun,
      startedAt: performance.now(),
      endedAt: null,
      language: request.language,
    });
    this.changed();
    let pending: RunEvent[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const flush = () => {
      clearTimeout(timer);
      timer = undefined;
      const events = pending;
      pending = [];
      // Another run may have taken the place in the meantime.
      if (this.aborts.get(key) === abort) this.apply(key, events);
    };
    for await (const event of execute(request, abort.signal)) {
      pending.push(event);
      timer ??= setTimeout(flush, batchMs);
    }
    flush();
    if (this.aborts.get(key) === abort) this.aborts.delete(key);
  }

  stop(key: string): void {
    this.aborts.get(key)?.abort();
  }

  /** Ends and forgets all runs. */
  clear(): void {
    for (const abort of this.aborts.values()) abort.abort();
    this.aborts.clear();
    this.runs.clear();
    this.changed();
  }

  private apply(key: string, events: RunEvent[]) {
    const run = this.runs.get(key);
    if (!run) return;
    const state = reduce(run.state, events);
    const endedAt = state.phase === 'ended' ? (run.endedAt ?? performance.now()) : null;
    this.runs.set(key, { ...run, state, endedAt });
    this.changed();
  }

  private changed() {
    for (const listener of this.listeners) listener();
  }
}
