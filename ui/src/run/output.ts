import type { Output } from '../api/types';

export type StreamName = 'stdout' | 'stderr';

/** A piece of output, in order of arrival. */
export type Piece =
  | { kind: 'text'; stream: StreamName; text: string }
  | { kind: 'bytes'; stream: StreamName; base64: string }
  | { kind: 'skipped'; stream: StreamName; bytes: number };

/**
 * What is kept of a run's output: the beginning and the end, however much came
 * between. The server bounds each stream too, but to far more than a page
 * should hold.
 */
export interface OutputLog {
  head: Piece[];
  tail: Piece[];
  headChars: number;
  tailChars: number;
  /** Characters that fell out between head and tail. */
  droppedChars: number;
}

export const headLimit = 256 * 1024;
export const tailLimit = 768 * 1024;
/** Text is split into pieces of at most this many characters. */
const pieceLimit = 16 * 1024;

export const emptyLog: OutputLog = {
  head: [],
  tail: [],
  headChars: 0,
  tailChars: 0,
  droppedChars: 0,
};

/** The log after more output came. The old log stays as it is. */
export function append(log: OutputLog, news: { stream: StreamName; output: Output }[]): OutputLog {
  const next: OutputLog = { ...log, head: [...log.head], tail: [...log.tail] };
  for (const { stream, output } of news) {
    for (const piece of pieces(stream, output)) {
      if (next.tail.length === 0 && next.headChars + size(piece) <= headLimit) {
        push(next.head, piece);
        next.headChars += size(piece);
      } else {
        push(next.tail, piece);
        next.tailChars += size(piece);
      }
    }
    // Trimmed only at twice the limit, so that trimming is rare.
    if (next.tailChars > 2 * tailLimit) trim(next);
  }
  trim(next);
  return next;
}

function trim(log: OutputLog) {
  let count = 0;
  while (log.tailChars > tailLimit && count < log.tail.length - 1) {
    const chars = size(log.tail[count]!);
    log.tailChars -= chars;
    log.droppedChars += chars;
    count++;
  }
  log.tail.splice(0, count);
}

function* pieces(stream: StreamName, output: Output): Generator<Piece> {
  if (output.skipped && output.skipped > 0) {
    yield { kind: 'skipped', stream, bytes: output.skipped };
  }
  if (output.encoding === 'base64') {
    if (output.data) yield { kind: 'bytes', stream, base64: output.data };
    return;
  }
  for (let at = 0; at < output.data.length;) {
    let end = Math.min(at + pieceLimit, output.data.length);
    if (end < output.data.length && isHighSurrogate(output.data.charCodeAt(end - 1))) end--;
    yield { kind: 'text', stream, text: output.data.slice(at, end) };
    at = end;
  }
}

function isHighSurrogate(unit: number) {
  return unit >= 0xd800 && unit <= 0xdbff;
}

/** Joins short pieces of one stream, so that a program that writes byte by byte stays cheap. */
function push(list: Piece[], piece: Piece) {
  const last = list.at(-1);
  if (
    last?.kind === 'text' &&
    piece.kind === 'text' &&
    last.stream === piece.stream &&
    last.text.length + piece.text.length <= pieceLimit
  ) {
    list[list.length - 1] = { ...last, text: last.text + piece.text };
  } else {
    list.push(piece);
  }
}

function size(piece: Piece): number {
  switch (piece.kind) {
    case 'text':
      return piece.text.length;
    case 'bytes':
      return piece.base64.length;
    case 'skipped':
      return 0;
  }
}

/** The kept output as plain text, with a note wherever something is left out. */
export function plainText(log: OutputLog): string {
  const text = (list: Piece[]) =>
    list
      .map((p) => {
        switch (p.kind) {
          case 'text':
            return p.text;
          case 'bytes':
            return `[base64: ${p.base64}]`;
          case 'skipped':
            return `\n[… ${p.bytes} bytes of ${p.stream} left out …]\n`;
        }
      })
      .join('');
  const gap = log.droppedChars > 0 ? `\n[… ${log.droppedChars} characters left out …]\n` : '';
  return text(log.head) + gap + text(log.tail);
}

export function isEmpty(log: OutputLog): boolean {
  return log.head.length === 0 && log.tail.length === 0;
}
