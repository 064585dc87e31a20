import type { Fetch } from './http';

/** A body that gives the chunks one by one, then ends, breaks or stays open. */
export function bodyOf(
  chunks: (string | Uint8Array)[],
  then: 'end' | 'break' | 'hang' = 'end',
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const left = [...chunks];
  return new ReadableStream({
    pull(controller) {
      const chunk = left.shift();
      if (chunk !== undefined) {
        controller.enqueue(typeof chunk === 'string' ? encoder.encode(chunk) : chunk);
      } else if (then === 'end') {
        controller.close();
      } else if (then === 'break') {
        controller.error(new TypeError('network error'));
      } else {
        return new Promise(() => undefined);
      }
      return undefined;
    },
  });
}

export function eventStream(
  chunks: (string | Uint8Array)[],
  then: 'end' | 'break' | 'hang' = 'end',
): Response {
  return new Response(bodyOf(chunks, then), {
    headers: { 'Content-Type': 'text/event-stream; charset=utf-8' },
  });
}

/** A fetch that gives the answers in turn, and keeps what it was asked. */
export function fetchOf(...answers: (Response | Error)[]) {
  const asked: { path: string; init: RequestInit }[] = [];
  const fetch = (async (path: string, init: RequestInit) => {
    asked.push({ path, init });
    init.signal?.throwIfAborted();
    const answer = answers.shift();
    if (!answer) throw new TypeError('Failed to fetch');
    if (answer instanceof Error) throw answer;
    return answer;
  }) as Fetch;
  return { fetch, asked };
}

export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
}
