import { formatBytes } from '../format';
import type { OutputLog, Piece, StreamName } from './output';
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
  let terminal: Terminal | undefined;
  let current: StreamName | undefined;
  let pending = '';
  const flush = () => {
    if (terminal && pending) terminal.write(pending);
    // The empty line after a final newline is not a line.
    if (terminal && terminal.lines.length > 1 && terminal.lines.at(-1)!.length === 0) {
      terminal.lines.pop();
    }
    terminal = undefined;
    current = undefined;
    pending = '';
  };
  for (const piece of pieces) {
    if (piece.kind === 'text') {
      if (current !== piece.stream) {
        flush();
        current = piece.stream;
        terminal = new Terminal();
        drawn.push({ kind: 'lines', stream: piece.stream, lines: terminal.lines });
      }
      pending += piece.text;
      continue;
    }
    flush();
    if (piece.kind === 'skipped') {
      drawn.push({
        kind: 'gap',
        text: `${formatBytes(piece.bytes)} of ${piece.stream} left out`,
      });
    } else {
      drawn.push({
        kind: 'bytes',
        stream: piece.stream,
        base64: piece.base64,
        bytes: base64Bytes(piece.base64),
      });
    }
  }
  flush();
  return drawn;
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
  const kept: Block[] = [];
  let left = count;
  for (const block of drawn) {
    if (left <= 0) break;
    kept.push(block.kind === 'lines' ? { ...block, lines: block.lines.slice(0, left) } : block);
    left -= linesIn(block);
  }
  return kept;
}

function lastLines(drawn: Block[], count: number): Block[] {
  const kept: Block[] = [];
  let left = count;
  for (const block of drawn.toReversed()) {
    if (left <= 0) break;
    kept.push(block.kind === 'lines' ? { ...block, lines: block.lines.slice(-left) } : block);
    left -= linesIn(block);
  }
  return kept.reverse();
}

function firstChars(pieces: Piece[], count: number): Piece[] {
  const kept: Piece[] = [];
  let left = count;
  for (const piece of pieces) {
    if (left <= 0) break;
    kept.push(piece.kind === 'text' ? { ...piece, text: piece.text.slice(0, left) } : piece);
    left -= lengthOf(piece);
  }
  return kept;
}

function lastChars(pieces: Piece[], count: number): Piece[] {
  const kept: Piece[] = [];
  let left = count;
  for (const piece of pieces.toReversed()) {
    if (left <= 0) break;
    kept.push(piece.kind === 'text' ? { ...piece, text: piece.text.slice(-left) } : piece);
    left -= lengthOf(piece);
  }
  return kept.reverse();
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
