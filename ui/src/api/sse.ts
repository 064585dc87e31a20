import { createParser } from 'eventsource-parser';

export interface ServerEvent {
  event: string;
  data: string;
}

/** The stream went silent for longer than its contract allows. */
export class StalledStream extends Error {
  override name = 'StalledStream';
}

/**
 * Reads server-sent events from a response body until it ends. An event whose
 * closing blank line never came is dropped, as the standard says, so a stream
 * that was cut never yields half an event. With idleMs, a silence of that
 * length is an error: a proxy may keep a connection open whose other end is
 * gone. The body is cancelled when the caller stops iterating.
 */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  idleMs?: number,
): AsyncGenerator<ServerEvent, void, void> {
  let ready: ServerEvent[] = [];
  const parser = createParser({
    onEvent: (e) => ready.push({ event: e.event ?? 'message', data: e.data }),
  });
  const decoder = new TextDecoder();
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await readWithin(reader, idleMs);
      if (done) return;
      parser.feed(decoder.decode(value, { stream: true }));
      const events = ready;
      ready = [];
      yield* events;
    }
  } finally {
    // Not awaited: a source that never answers its cancellation must not hold
    // the caller.
    void reader.cancel().catch(() => undefined);
  }
}

async function readWithin(reader: ReadableStreamDefaultReader<Uint8Array>, idleMs?: number) {
  if (idleMs === undefined) return reader.read();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new StalledStream(`nothing was received for ${idleMs / 1000} s`)),
      idleMs,
    );
  });
  try {
    return await Promise.race([reader.read(), silence]);
  } finally {
    clearTimeout(timer);
  }
}
