import { describe, expect, it } from 'vitest';
import { append, emptyLog, headLimit, type OutputLog, plainText, tailLimit } from './output';
import { blocks } from './rows';

type Piece = [
  stream: 'stdout' | 'stderr',
  data: string,
  more?: { encoding?: 'base64'; skipped?: number },
];

const logOf = (pieces: Piece[], log: OutputLog = emptyLog) =>
  append(
    log,
    pieces.map(([stream, data, more]) => ({
      stream,
      output: { data, encoding: more?.encoding ?? 'utf-8', skipped: more?.skipped },
    })),
  );

describe('append', () => {
  it('keeps the order of arrival and joins what belongs together', () => {
    const log = logOf([
      ['stdout', 'a'],
      ['stdout', 'b'],
      ['stderr', 'c'],
      ['stdout', 'd'],
    ]);
    expect(log.head).toEqual([
      { kind: 'text', stream: 'stdout', text: 'ab' },
      { kind: 'text', stream: 'stderr', text: 'c' },
      { kind: 'text', stream: 'stdout', text: 'd' },
    ]);
  });

  it('leaves the old log as it is', () => {
    const old = logOf([['stdout', 'a']]);
    const before = structuredClone(old);
    logOf([['stdout', 'b']], old);
    expect(old).toEqual(before);
  });

  it('marks what the server left out', () => {
    const log = logOf([
      ['stdout', 'a'],
      ['stdout', 'z', { skipped: 5 }],
    ]);
    expect(plainText(log)).toBe('a\n[… 5 bytes of stdout left out …]\nz');
  });

  it('holds the beginning and the end of any amount, and counts the rest', () => {
    let log = emptyLog;
    let written = 0;
    for (let i = 0; i < 400; i++) {
      const data = `${i}\n`.repeat(4000);
      written += data.length;
      log = logOf([['stdout', data]], log);
    }
    expect(log.headChars).toBeLessThanOrEqual(headLimit);
    expect(log.tailChars).toBeLessThanOrEqual(tailLimit);
    expect(log.headChars + log.tailChars + log.droppedChars).toBe(written);
    expect(plainText(log).startsWith('0\n')).toBe(true);
    expect(plainText(log).endsWith('399\n')).toBe(true);
  });

  it('never splits a pair of surrogates', () => {
    const log = logOf([['stdout', 'x' + '😀'.repeat(20_000)]]);
    for (const piece of log.head) {
      expect(piece.kind === 'text' && piece.text.isWellFormed()).toBe(true);
    }
  });
});

describe('blocks', () => {
  it('separates the streams and keeps their order', () => {
    const drawn = blocks(
      logOf([
        ['stdout', 'a\n'],
        ['stderr', 'b\n'],
        ['stdout', 'c'],
      ]),
    );
    expect(drawn).toEqual([
      { kind: 'lines', stream: 'stdout', lines: [[{ text: 'a' }]] },
      { kind: 'lines', stream: 'stderr', lines: [[{ text: 'b' }]] },
      { kind: 'lines', stream: 'stdout', lines: [[{ text: 'c' }]] },
    ]);
  });

  it('shows a gap where the server left bytes out, and bytes that are not text', () => {
    const drawn = blocks(
      logOf([
        ['stdout', 'a'],
        ['stdout', '//4=', { encoding: 'base64', skipped: 2048 }],
      ]),
    );
    expect(drawn.slice(1)).toEqual([
      { kind: 'gap', text: '2.0 KiB of stdout left out' },
      { kind: 'bytes', stream: 'stdout', base64: '//4=', bytes: 2 },
    ]);
  });

  it('draws an escape sequence that came in two pieces', () => {
    const drawn = blocks(
      logOf([
        ['stdout', 'a\x1b[3'],
        ['stdout', '1mb'],
      ]),
    );
    expect(drawn).toEqual([
      {
        kind: 'lines',
        stream: 'stdout',
        lines: [[{ text: 'a' }, { text: 'b', style: { color: 'red' } }]],
      },
    ]);
  });

  it('folds the middle of many lines', () => {
    const data = Array.from({ length: 5000 }, (_, i) => `${i}\n`).join('');
    const drawn = blocks(logOf([['stdout', data]]), { headLines: 3, tailLines: 2, chars: 1e6 });
    expect(drawn).toEqual([
      {
        kind: 'lines',
        stream: 'stdout',
        lines: [[{ text: '0' }], [{ text: '1' }], [{ text: '2' }]],
      },
      { kind: 'gap', text: '4,995 lines not shown' },
      { kind: 'lines', stream: 'stdout', lines: [[{ text: '4998' }], [{ text: '4999' }]] },
    ]);
  });

  it('draws a bounded part of a large output', () => {
    const drawn = blocks(logOf([['stdout', 'x\n'.repeat(500_000) + 'END']]));
    const lines = drawn.flatMap((b) => (b.kind === 'lines' ? b.lines : []));
    expect(lines.length).toBeLessThanOrEqual(800);
    expect(lines.at(-1)).toEqual([{ text: 'END' }]);
    expect(drawn.some((b) => b.kind === 'gap')).toBe(true);
  });

  it.each([
    ['an escape sequence', 'a'.repeat(1000) + '\x1b[31m' + 'b'.repeat(8), 10],
    ['a pair of surrogates', 'a'.repeat(1000) + '😀' + 'b'.repeat(8), 9],
  ])('begins the end of the output after %s that it would cut', (_, data, chars) => {
    const drawn = blocks(logOf([['stdout', data]]), { headLines: 1, tailLines: 1, chars });
    expect(drawn.at(-1)).toEqual({
      kind: 'lines',
      stream: 'stdout',
      lines: [[{ text: 'b'.repeat(8) }]],
    });
  });
});
