import type { Problem } from './types';

/** Every way in which a call to the server can fail. */
export type Failure =
  /** The server could not be reached. */
  | { kind: 'unreachable' }
  /** The server answered with an error. */
  | { kind: 'refused'; status: number; problem: Problem }
  /** The answer began and did not end as the contract says. */
  | { kind: 'broken'; detail: string }
  /** The caller stopped it. */
  | { kind: 'stopped' };

export class CallError extends Error {
  override name = 'CallError';
  readonly failure: Failure;

  constructor(failure: Failure) {
    super(describe(failure));
    this.failure = failure;
  }
}

export type Fetch = typeof fetch;

/** Calls the server and returns its answer when that is a success. */
export async function call(fetch: Fetch, path: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, { ...init, cache: 'no-store', credentials: 'same-origin' });
  } catch (error) {
    throw new CallError(
      init.signal?.aborted ? { kind: 'stopped' } : asFailure(error, 'unreachable'),
    );
  }
  if (!response.ok) {
    throw new CallError({
      kind: 'refused',
      status: response.status,
      problem: await readProblem(response),
    });
  }
  return response;
}

export async function getJSON<T>(fetch: Fetch, path: string, signal?: AbortSignal): Promise<T> {
  const response = await call(fetch, path, { headers: { Accept: 'application/json' }, signal });
  try {
    return (await response.json()) as T;
  } catch (error) {
    throw new CallError(signal?.aborted ? { kind: 'stopped' } : asFailure(error, 'broken'));
  }
}

/** Turns what was thrown into a failure; kind says what an unknown error means here. */
export function asFailure(error: unknown, kind: 'unreachable' | 'broken'): Failure {
  if (error instanceof CallError) return error.failure;
  if (error instanceof DOMException && error.name === 'AbortError') return { kind: 'stopped' };
  if (kind === 'unreachable') return { kind };
  return { kind, detail: error instanceof Error ? error.message : String(error) };
}

const maxErrorBody = 64 * 1024;

/**
 * Reads an error's body: a problem document, an OpenAI error object, or
 * whatever a proxy on the way wrote.
 */
async function readProblem(response: Response): Promise<Problem> {
  let text = '';
  try {
    text = (await response.text()).slice(0, maxErrorBody);
  } catch {
    // The status alone then says what is known.
  }
  const retryAfter = Number(response.headers.get('Retry-After') ?? '');
  const fallback: Problem = {
    type: 'about:blank',
    title: response.statusText || `HTTP status ${response.status}`,
    status: response.status,
    detail: '',
    ...(retryAfter > 0 ? { retry_after_seconds: retryAfter } : {}),
  };
  try {
    return { ...fallback, ...problemFrom(JSON.parse(text)) };
  } catch {
    const type = response.headers.get('Content-Type') ?? '';
    return type.startsWith('text/plain') ? { ...fallback, detail: text.slice(0, 500) } : fallback;
  }
}

/** The problem in an error document of either shape. */
export function problemFrom(document: unknown): Partial<Problem> {
  if (!isRecord(document)) return {};
  const error = document['error'];
  if (typeof error === 'string') return { detail: error };
  if (isRecord(error)) {
    return {
      detail: typeof error['message'] === 'string' ? error['message'] : '',
      ...(typeof error['type'] === 'string' ? { title: error['type'] } : {}),
    };
  }
  return document as Partial<Problem>;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** One sentence for people. */
export function describe(failure: Failure): string {
  switch (failure.kind) {
    case 'unreachable':
      return 'Preheat could not be reached.';
    case 'broken':
      return failure.detail;
    case 'stopped':
      return 'Stopped.';
    case 'refused':
      return failure.problem.detail || failure.problem.title;
  }
}
