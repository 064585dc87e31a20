import { asFailure, call, CallError, type Failure, type Fetch, isRecord } from './http';
import { readEvents } from './sse';
import type { Artifact, ExecutionRequest, Exit, Output, RichResult, Start } from './types';

/** What happens during one execution, as the page sees it. */
export type RunEvent =
  | { type: 'start'; start: Start }
  | { type: 'output'; stream: 'stdout' | 'stderr'; output: Output }
  | { type: 'result'; result: RichResult }
  | { type: 'artifact'; artifact: Artifact }
  | { type: 'exit'; exit: Exit }
  | { type: 'failure'; failure: Failure };

/** Pings come at least every 10 s, so three missed ones mean a dead connection. */
const silenceMs = 35_000;

/**
 * Runs code and yields what happens. The last event, and only the last, is an
 * "exit" or a "failure": a stream that ends without the server's exit event is
 * a failure, whatever came before. It never throws.
 */
export async function* execute(
  request: ExecutionRequest,
  signal: AbortSignal,
  fetch: Fetch = globalThis.fetch,
  idleMs: number = silenceMs,
): AsyncGenerator<RunEvent, void, void> {
  let begun = false;
  try {
    const response = await call(fetch, '/v1/sandbox/execute', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Accept: 'text/event-stream' },
      body: JSON.stringify(request),
      signal,
    });
    begun = true;
    const type = response.headers.get('Content-Type') ?? '';
    if (!type.startsWith('text/event-stream') || !response.body) {
      throw new Error(`the answer is ${type || 'of no type'}, not an event stream`);
    }
    for await (const { event, data } of readEvents(response.body, idleMs)) {
      const parsed = parse(event, data);
      if (!parsed) continue;
      yield parsed;
      if (parsed.type === 'exit') return;
    }
    throw new Error('the stream ended without an exit event');
  } catch (error) {
    const failure = signal.aborted
      ? { kind: 'stopped' as const }
      : asFailure(error, begun ? 'broken' : 'unreachable');
    yield { type: 'failure', failure };
  }
}

const statuses = new Set<unknown>([
  'succeeded',
  'failed',
  'timed_out',
  'out_of_memory',
  'output_limit',
  'cancelled',
  'platform_error',
]);

/** One event; undefined for pings and for events of a newer server. */
function parse(event: string, data: string): RunEvent | undefined {
  switch (event) {
    case 'start':
      return { type: 'start', start: record<Start>(event, data, 'sandbox_name') };
    case 'stdout':
    case 'stderr':
      return { type: 'output', stream: event, output: record<Output>(event, data, 'data') };
    case 'result':
      return { type: 'result', result: record<RichResult>(event, data, 'mime', 'data') };
    case 'artifact':
      return { type: 'artifact', artifact: record<Artifact>(event, data, 'path') };
    case 'exit': {
      const exit = record<Exit>(event, data, 'status');
      if (!statuses.has(exit.status)) throw malformed(event);
      return { type: 'exit', exit };
    }
  }
  return undefined;
}

function record<T>(event: string, data: string, ...strings: (keyof T & string)[]): T {
  let value: unknown;
  try {
    value = JSON.parse(data);
  } catch {
    throw malformed(event);
  }
  if (!isRecord(value) || strings.some((name) => typeof value[name] !== 'string')) {
    throw malformed(event);
  }
  return value as T;
}

function malformed(event: string): CallError {
  return new CallError({
    kind: 'broken',
    detail: `the stream carried a malformed "${event}" event`,
  });
}
