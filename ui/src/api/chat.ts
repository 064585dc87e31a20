import { asFailure, call, CallError, type Fetch, isRecord, problemFrom } from './http';
import { readEvents } from './sse';
import type { ChatMessage } from './types';

/** A piece of the answer, or why the model ended it. */
export type ChatEvent = { type: 'text'; text: string } | { type: 'finish'; reason: string };

/**
 * Streams the answer to a conversation. It returns only after the server's
 * [DONE]; an answer that breaks off, an error inside the stream, or an abort is
 * thrown as a CallError. No model is named: the server knows which one it has.
 */
export async function* streamChat(
  messages: ChatMessage[],
  signal: AbortSignal,
  fetch: Fetch = globalThis.fetch,
): AsyncGenerator<ChatEvent, void, void> {
  const response = await call(fetch, '/v1/chat/completions', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'text/event-stream' },
    body: JSON.stringify({ messages, stream: true }),
    signal,
  });
  try {
    const type = response.headers.get('Content-Type') ?? '';
    if (!type.startsWith('text/event-stream') || !response.body) {
      throw new Error(`the answer is ${type || 'of no type'}, not an event stream`);
    }
    for await (const { data } of readEvents(response.body)) {
      if (data === '[DONE]') return;
      yield* parse(data);
    }
    throw new Error('the answer broke off before its end');
  } catch (error) {
    throw new CallError(signal.aborted ? { kind: 'stopped' } : asFailure(error, 'broken'));
  }
}

function* parse(data: string): Generator<ChatEvent> {
  let chunk: unknown;
  try {
    chunk = JSON.parse(data);
  } catch {
    throw new Error('the answer carried a piece that is not JSON');
  }
  if (!isRecord(chunk)) return;
  if (chunk['error']) {
    throw new Error(problemFrom(chunk).detail || 'the model failed while it was answering');
  }
  // The last chunk of a stream may carry usage and no choices.
  const choice: unknown = Array.isArray(chunk['choices']) ? chunk['choices'][0] : undefined;
  if (!isRecord(choice)) return;
  const delta = choice['delta'];
  if (isRecord(delta) && typeof delta['content'] === 'string' && delta['content'] !== '') {
    yield { type: 'text', text: delta['content'] };
  }
  if (typeof choice['finish_reason'] === 'string') {
    yield { type: 'finish', reason: choice['finish_reason'] };
  }
}
