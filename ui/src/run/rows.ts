import { formatBytes } from '../format';
import type { OutputLog, Piece, StreamName } from './output';
import { safeCut } from './escapes';
import { type Line, Terminal } from './terminal';

/** Output ready to be drawn: stretches of one stream, and what is missing between them. */
export type Block =
  | { kind: 'lines'; stream: StreamName; lines: Line[] }
  | { kind: 'bytes'; stream: StreamName; base64: string; bytes: number }
  | { kind: 'gap'; text: string };

export interface Window {
  headLines: number;
  tailLines: number;
  /** At most this many characters of either end are looked at. */
  chars: number;
}

const defaultWindow: Window = { headLines: 200, tailLines: 600, chars: 96 * 1024 };

/** The log as blocks: its first and last lines, and a note about the rest. */
export function blocks(log: OutputLog, window: Window = defaultWindow): Block[] {
  const all = [...log.head, ...log.tail];
  const chars = all.reduce((sum, p) => sum + lengthOf(p), 0);
  if (log.droppedChars === 0 && chars <= 2 * window.chars) {
    return foldLines(draw(all), window);
  }
  const head = firstLines(draw(firstChars(all, window.chars)), window.headLines);
  const tail = lastLines(draw(lastChars(all, window.chars)), window.tailLines);
  return [...head, { kind: 'gap', text: 'the middle of the output is not shown' }, ...tail];
}

function draw(pieces: Piece[]): Block[] {
  const drawn: Block[] = [];
  let written = '';
  for (const [i, piece] of pieces.entries()) {
    if (piece.kind !== 'text') {
      drawn.push(absence(piece));
      continue;
    }
    written += piece.text;
    const next = pieces[i + 1];
    if (next?.kind === 'text' && next.stream === piece.stream) continue;
    drawn.push({ kind: 'lines', stream: piece.stream, lines: drawLines(written) });
    written = '';
  }
  return drawn;
}

function drawLines(text: string): Line[] {
  const terminal = new Terminal();
  terminal.write(text);
  const lines = terminal.lines();
  // The empty line after a final newline is not a line.
  if (lines.length > 1 && lines.at(-1)!.length === 0) lines.pop();
  return lines;
}

function absence(piece: Exclude<Piece, { kind: 'text' }>): Block {
  if (piece.kind === 'skipped') {
    return { kind: 'gap', text: `${formatBytes(piece.bytes)} of ${piece.stream} left out` };
  }
  const { stream, base64 } = piece;
  return { kind: 'bytes', stream, base64, bytes: base64Bytes(base64) };
}

function foldLines(drawn: Block[], window: Window): Block[] {
  const total = countLines(drawn);
  const hidden = total - window.headLines - window.tailLines;
  if (hidden <= 0) return drawn;
  return [
    ...firstLines(drawn, window.headLines),
    { kind: 'gap', text: `${hidden.toLocaleString('en')} lines not shown` },
    ...lastLines(drawn, window.tailLines),
  ];
}

function countLines(drawn: Block[]): number {
  return drawn.reduce((sum, b) => sum + linesIn(b), 0);
}

function linesIn(block: Block): number {
  return block.kind === 'lines' ? block.lines.length : 1;
}

function firstLines(drawn: Block[], count: number): Block[] {
  return takeUntil(drawn, count, linesIn, (block, left) =>
    block.kind === 'lines' ? { ...block, lines: block.lines.slice(0, left) } : block,
  );
}

function lastLines(drawn: Block[], count: number): Block[] {
  return takeUntil(drawn.toReversed(), count, linesIn, (block, left) =>
    block.kind === 'lines' ? { ...block, lines: block.lines.slice(-left) } : block,
  ).reverse();
}

function firstChars(pieces: Piece[], count: number): Piece[] {
  return takeUntil(pieces, count, lengthOf, (piece, left) =>
    piece.kind === 'text' ? { ...piece, text: piece.text.slice(0, left) } : piece,
  );
}

function lastChars(pieces: Piece[], count: number): Piece[] {
  return takeUntil(pieces.toReversed(), count, lengthOf, (piece, left) =>
    piece.kind === 'text' ? { ...piece, text: lastText(piece.text, left) } : piece,
  ).reverse();
}

function lastText(text: string, count: number): string {
  return text.slice(safeCut(text, text.length - count));
}

/** Takes items until their sizes reach count, with the last one cut to what is left. */
function takeUntil<T>(
  items: T[],
  count: number,
  size: (item: T) => number,
  cut: (item: T, left: number) => T,
): T[] {
  const kept: T[] = [];
  let left = count;
  for (const item of items) {
    if (left <= 0) break;
    kept.push(cut(item, left));
    left -= size(item);
  }
  return kept;
}

function lengthOf(piece: Piece): number {
  switch (piece.kind) {
    case 'text':
      return piece.text.length;
    case 'bytes':
      return Math.min(piece.base64.length, 256);
    case 'skipped':
      return 0;
  }
}

function base64Bytes(base64: string): number {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0;
  return Math.max(0, (base64.length / 4) * 3 - padding);
}
