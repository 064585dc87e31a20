import { eastAsianWidth } from 'get-east-asian-width';
import { isHidden, visible } from '../text/hidden';
import { sequenceEnd } from './escapes';
import { Styles, type TextStyle } from './style';

export type { TextStyle } from './style';

export interface Span {
  text: string;
  style?: TextStyle;
}

export type Line = Span[];

/** Lines longer than this are not drawn any further. */
const widest = 20_000;

/** Output of more styles than this goes on without any: each is an element of the page. */
const mostSpans = 8000;

/** The marks of more than this many that follow one letter are left out. */
const mostMarks = 16;

/** The column that a wide letter takes beside its own. */
const secondHalf = '';

/**
 * Draws what a program wrote on an endless page, as a terminal would: \r and \b
 * move back and are written over, colours are kept, and all else that a
 * terminal would obey is left out. The result is data, not markup.
 *
 * The work is linear in the input, whatever the program wrote: the line that is
 * being drawn is a grid of cells, and becomes spans when it ends.
 */
export class Terminal {
  /** Cells written and units of text read so far: what drawing has cost. */
  work = 0;

  private readonly ended: Line[] = [];
  private cells = new Cells();
  private column = 0;
  private spans = 0;
  private style: TextStyle | undefined;
  private readonly styles = new Styles();

  /** Draws text. An escape sequence must not be split between two calls. */
  write(text: string): void {
    let at = 0;
    while (at < text.length) {
      const code = text.codePointAt(at)!;
      let end = at + (code > 0xffff ? 2 : 1);
      if (code === 0x1b) {
        end = sequenceEnd(text, at);
        this.escape(text.slice(at, end));
      } else {
        this.letter(code);
      }
      this.work += end - at;
      at = end;
    }
  }

  /** The lines so far, the unfinished one last. */
  lines(): Line[] {
    return [...this.ended, this.line()];
  }

  private letter(code: number) {
    switch (code) {
      case 0x0a:
        this.ended.push(this.line());
        this.spans += this.ended.at(-1)!.length;
        this.cells = new Cells();
        this.column = 0;
        return;
      case 0x0d:
        this.column = 0;
        return;
      case 0x08:
        this.column = Math.max(0, this.column - 1);
        return;
    }
    if (code < 0x20 && code !== 0x09) {
      // Shown as its picture: a NUL that nobody sees is a riddle.
      this.put(String.fromCharCode(0x2400 + code), 1);
    } else if (code === 0x7f) {
      this.put('\u2421', 1);
    } else if (isHidden(code)) {
      this.put(visible(code), 1);
    } else {
      const letter = String.fromCodePoint(code);
      if (code >= 0x300 && /^[\p{Mn}\p{Me}\u200c\u200d]$/u.test(letter)) this.mark(letter);
      else this.put(letter, code < 0x1100 ? 1 : eastAsianWidth(code));
    }
  }

  private escape(sequence: string) {
    if (!sequence.startsWith('\x1b[')) return;
    if (/^\x1b\[[0-9;:]*m$/.test(sequence)) {
      this.style = this.styles.after(sequence);
    } else if (/^\x1b\[0?K$/.test(sequence)) {
      this.cells.cut(this.column);
    } else if (sequence === '\x1b[2K') {
      this.cells.cut(0);
    } else if (/^\x1b\[1?G$/.test(sequence)) {
      this.column = 0;
    }
  }

  private put(letter: string, columns: number) {
    if (this.column + columns > widest) {
      this.cells.overflows = true;
      return;
    }
    this.cells.set(this.column, columns, letter, this.style);
    this.column += columns;
    this.work += columns;
  }

  /** Adds a combining mark to the letter before it. */
  private mark(letter: string) {
    if (this.column === 0) this.put(letter, 1);
    else this.cells.append(this.column - 1, letter);
  }

  private line(): Line {
    this.work += this.cells.width;
    return this.cells.line(mostSpans - this.spans);
  }
}

/** The line that is being drawn. Each operation but line takes constant time. */
class Cells {
  /** Columns in use. */
  width = 0;
  /** Whether more was written than is drawn. */
  overflows = false;
  private readonly letters: string[] = [];
  private readonly looks: (TextStyle | undefined)[] = [];
  private readonly marks: number[] = [];
  /** The cut after which each column was written; older ones are blank. */
  private readonly written: number[] = [];
  private cuts = 0;

  set(column: number, columns: number, letter: string, style: TextStyle | undefined) {
    // Half a wide letter cannot stay.
    if (this.has(column) && this.letters[column] === secondHalf) this.letters[column - 1] = ' ';
    const next = column + columns;
    if (this.has(next) && this.letters[next] === secondHalf) this.letters[next] = ' ';
    for (let i = column; i < next; i++) {
      this.letters[i] = i === column ? letter : secondHalf;
      this.looks[i] = style;
      this.marks[i] = 0;
      this.written[i] = this.cuts;
    }
    this.width = Math.max(this.width, next);
  }

  append(column: number, mark: string) {
    const at = this.has(column) && this.letters[column] === secondHalf ? column - 1 : column;
    if (!this.has(at) || this.marks[at]! >= mostMarks) return;
    this.letters[at] += mark;
    this.marks[at]!++;
  }

  /** Erases the line from column on. */
  cut(column: number) {
    if (column === 0) this.cuts++;
    if (column < this.width && this.has(column) && this.letters[column] === secondHalf) {
      this.letters[column - 1] = ' ';
    }
    this.width = Math.min(this.width, column);
    this.overflows = false;
  }

  /** The line as spans, of which about the first most are styled. */
  line(most: number): Line {
    const line: Line = [];
    let text = '';
    let style: TextStyle | undefined;
    const flush = () => {
      if (text) line.push(style ? { text, style } : { text });
      text = '';
    };
    for (let i = 0; i < this.width; i++) {
      const drawn = this.has(i);
      const look = drawn && line.length < most ? this.looks[i] : undefined;
      if (look !== style) {
        flush();
        style = look;
      }
      text += drawn ? this.letters[i] : ' ';
    }
    if (this.overflows) text += '…';
    flush();
    return line;
  }

  private has(column: number): boolean {
    return column < this.width && this.written[column] === this.cuts;
  }
}
