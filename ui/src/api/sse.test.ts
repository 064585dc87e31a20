import { describe, expect, it } from 'vitest';
import { readEvents, StalledStream } from './sse';
import { all, bodyOf } from './testing';

const bytes = (text: string) => new TextEncoder().encode(text);

describe('readEvents', () => {
  const stream =
    ': a comment\n\nevent: stdout\ndata: {"data":"€ and 😀"}\n\ndata: one\ndata: two\n\nevent: exit\ndata: {}\n\n';
  const events = [
    { event: 'stdout', data: '{"data":"€ and 😀"}' },
    { event: 'message', data: 'one\ntwo' },
    { event: 'exit', data: '{}' },
  ];

  for (const [name, newline] of [
    ['LF', '\n'],
    ['CRLF', '\r\n'],
  ] as const) {
    it(`reads the same events wherever the network cuts, with ${name}`, async () => {
      const whole = bytes(stream.replaceAll('\n', newline));
      for (let cut = 0; cut <= whole.length; cut++) {
        const read = await all(readEvents(bodyOf([whole.slice(0, cut), whole.slice(cut)])));
        expect(read, `cut at ${cut}`).toEqual(events);
      }
    });
  }

  it('reads a stream that comes byte by byte', async () => {
    const chunks = Array.from(bytes(stream), (b) => Uint8Array.of(b));
    expect(await all(readEvents(bodyOf(chunks)))).toEqual(events);
  });

  it('drops an event whose end never came', async () => {
    const read = await all(readEvents(bodyOf(['data: 1\n\nevent: exit\ndata: {"status":"succ'])));
    expect(read).toEqual([{ event: 'message', data: '1' }]);
  });

  it('throws when the connection breaks', async () => {
    await expect(all(readEvents(bodyOf(['data: 1\n\n'], 'break')))).rejects.toThrow(
      'network error',
    );
  });

  it('takes a long silence for a dead connection', async () => {
    await expect(all(readEvents(bodyOf(['data: 1\n\n'], 'hang'), 5))).rejects.toThrow(
      StalledStream,
    );
  });

  it('cancels the body when its reader has seen enough', async () => {
    let cancelled = false;
    const body = new ReadableStream<Uint8Array>({
      start: (c) => c.enqueue(bytes('data: 1\n\ndata: 2\n\n')),
      cancel: () => {
        cancelled = true;
      },
    });
    for await (const event of readEvents(body)) {
      expect(event.data).toBe('1');
      break;
    }
    expect(cancelled).toBe(true);
  });
});
