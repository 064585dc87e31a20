import Anser from 'anser';

/** How a stretch of text looks. Colours are palette names or CSS colours. */
export interface TextStyle {
  color?: string;
  background?: string;
  bold?: boolean;
  dim?: boolean;
  italic?: boolean;
  underline?: boolean;
  strike?: boolean;
  inverse?: boolean;
}

export interface Span {
  text: string;
  style?: TextStyle;
}

export type Line = Span[];

const token =
  // Control sequences, operating system commands, other escapes, line control, other controls.
  /\x1b\[[0-9:;<=>?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]|\r+\n|[\n\r\b]|[\x00-\x08\x0b-\x1f\x7f]/g;

/** Lines longer than this are not drawn any further. */
const widest = 20_000;

/**
 * Draws what a program wrote on an endless page, as a terminal would: \r and \b
 * move back and are written over, colours are kept, and all else that a
 * terminal would obey is left out. The result is data, not markup.
 */
export class Terminal {
  readonly lines: Line[] = [[]];
  private column = 0;
  /** Columns that are drawn on the last line. */
  private width = 0;
  private style: TextStyle | undefined;
  private readonly colours = new Anser();

  /** Draws text. An escape sequence must not be split between two calls. */
  write(text: string): void {
    let at = 0;
    for (const match of text.matchAll(token)) {
      if (match.index > at) this.put(text.slice(at, match.index));
      this.control(match[0]);
      at = match.index + match[0].length;
    }
    if (at < text.length) this.put(text.slice(at));
  }

  private control(sequence: string) {
    if (sequence.endsWith('\n')) {
      this.lines.push([]);
      this.column = 0;
      this.width = 0;
    } else if (sequence === '\r') {
      this.column = 0;
    } else if (sequence === '\b') {
      this.column = Math.max(0, this.column - 1);
    } else if (sequence.startsWith('\x1b[')) {
      this.controlSequence(sequence);
    } else if (!sequence.startsWith('\x1b')) {
      // Shown as its picture: a NUL that nobody sees is a riddle.
      const code = sequence.charCodeAt(0);
      this.put(String.fromCharCode(code === 0x7f ? 0x2421 : 0x2400 + code));
    }
  }

  private controlSequence(sequence: string) {
    if (sequence.endsWith('m')) {
      // Without the escape that the parser takes as read.
      const chunk = sequence.slice(2) + '.';
      this.style = styleOf(this.colours.processChunkJson(chunk, { use_classes: true }, true));
    } else if (/^\x1b\[0?K$/.test(sequence)) {
      this.replaceLine(take(this.line(), this.column));
      this.width = Math.min(this.width, this.column);
    } else if (sequence === '\x1b[2K') {
      this.replaceLine([]);
      this.width = 0;
    } else if (/^\x1b\[1?G$/.test(sequence)) {
      this.column = 0;
    }
  }

  private line(): Line {
    return this.lines.at(-1)!;
  }

  private replaceLine(line: Line) {
    this.lines[this.lines.length - 1] = line;
  }

  private put(text: string) {
    const room = widest - this.column;
    if (room <= 0) return;
    const shown = text.length > room ? text.slice(0, room - 1) + '…' : text;
    const line = this.line();
    const span: Span = this.style ? { text: shown, style: this.style } : { text: shown };
    if (this.column >= this.width) {
      if (this.column > this.width) line.push({ text: ' '.repeat(this.column - this.width) });
      line.push(span);
    } else {
      this.replaceLine([
        ...take(line, this.column),
        span,
        ...drop(line, this.column + shown.length),
      ]);
    }
    this.column += shown.length;
    this.width = Math.max(this.width, this.column);
  }
}

function take(line: Line, columns: number): Line {
  const kept: Line = [];
  let left = columns;
  for (const span of line) {
    if (left <= 0) break;
    kept.push({ ...span, text: span.text.slice(0, left) });
    left -= span.text.length;
  }
  return kept;
}

function drop(line: Line, columns: number): Line {
  const kept: Line = [];
  let left = columns;
  for (const span of line) {
    if (left < span.text.length) kept.push({ ...span, text: span.text.slice(Math.max(0, left)) });
    left -= span.text.length;
  }
  return kept;
}

type Entry = ReturnType<typeof Anser.ansiToJson>[number];

function styleOf(entry: Entry): TextStyle | undefined {
  const has = (name: Entry['decorations'][number]) => entry.decorations.includes(name);
  const style: TextStyle = {};
  const color = colorOf(entry.fg, entry.fg_truecolor);
  const background = colorOf(entry.bg, entry.bg_truecolor);
  if (color) style.color = color;
  if (background) style.background = background;
  if (has('bold')) style.bold = true;
  if (has('dim')) style.dim = true;
  if (has('italic')) style.italic = true;
  if (has('underline')) style.underline = true;
  if (has('strikethrough')) style.strike = true;
  if (has('reverse')) style.inverse = true;
  return Object.keys(style).length > 0 ? style : undefined;
}

const names = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'];

/** "ansi-bright-red" → "bright-red"; 256 colours and true colours → CSS. */
function colorOf(name: string | null, truecolor: string | null): string | undefined {
  if (!name) return undefined;
  if (name === 'ansi-truecolor') return truecolor ? `rgb(${truecolor})` : undefined;
  const palette = /^ansi-palette-(\d+)$/.exec(name);
  return palette ? paletteColor(Number(palette[1])) : name.replace(/^ansi-/, '');
}

/** The xterm palette: 16 named colours, a cube of 6×6×6, 24 greys. */
function paletteColor(n: number): string | undefined {
  if (n < 16) return (n < 8 ? '' : 'bright-') + names[n % 8];
  if (n > 255) return undefined;
  if (n >= 232) {
    const grey = 8 + 10 * (n - 232);
    return `rgb(${grey}, ${grey}, ${grey})`;
  }
  const level = (i: number) => [0, 95, 135, 175, 215, 255][i % 6];
  const i = n - 16;
  return `rgb(${level(Math.floor(i / 36))}, ${level(Math.floor(i / 6))}, ${level(i)})`;
}
