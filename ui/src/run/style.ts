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

/**
 * Follows the sequences that set colours. Equal styles are one object, so that
 * neighbours can be compared and joined.
 */
export class Styles {
  private readonly colours = new Anser();
  private readonly known = new Map<string, TextStyle>();

  /** The style after a sequence "\x1b[…m"; undefined is plain. */
  after(sequence: string): TextStyle | undefined {
    // Without the escape that the parser takes as read.
    const chunk = sequence.slice(2) + '.';
    const style = styleOf(this.colours.processChunkJson(chunk, { use_classes: true }, true));
    if (!style) return undefined;
    const key = JSON.stringify(style);
    const known = this.known.get(key);
    if (known) return known;
    // A program may use any number of colours; only the last ones are kept.
    if (this.known.size >= 1024) this.known.clear();
    this.known.set(key, style);
    return style;
  }
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
