import { describe, expect, it } from 'vitest';
import { Terminal } from './terminal';

const draw = (...writes: string[]) => {
  const terminal = new Terminal();
  for (const text of writes) terminal.write(text);
  return terminal.lines();
};
const text = (...writes: string[]) =>
  draw(...writes).map((line) => line.map((span) => span.text).join(''));

describe('Terminal', () => {
  const cases: [name: string, written: string, lines: string[]][] = [
    ['lines', 'a\nb', ['a', 'b']],
    ['CRLF', 'a\r\nb\r\r\n', ['a', 'b', '']],
    ['a progress bar', '  1%\r 50%\r100%\n', ['100%', '']],
    ['a shorter text over a longer', 'abcdef\rxy', ['xycdef']],
    ['erase to the end of the line', 'abcdef\rxy\x1b[K', ['xy']],
    ['erase the line', 'abcdef\x1b[2K\rxy', ['xy']],
    ['backspace', 'abc\b\bX', ['aXc']],
    ['backspace at the beginning', '\b\bX', ['X']],
    ['a title is not shown', '\x1b]0;title\x07x', ['x']],
    ['cursor movement is not shown', 'a\x1b[5;5Hb\x1b[?25l', ['ab']],
    ['NUL and DEL', 'a\0b\x7f', ['a␀b␡']],
    ['an escape that never ends', 'a\x1b', ['a']],
    ['tabs stay', 'a\tb', ['a\tb']],
    ['markup stays text', '<b>&amp;', ['<b>&amp;']],
    ['a control sequence that the text ends within', 'a\x1b[3', ['a']],
    ['a command that the text ends within', 'a\x1b]0;title', ['a']],
    ['a command that another escape breaks off', '\x1b]0;t\x1b[31mx', ['x']],
    [
      'a sequence that is too long is text',
      '\x1b[' + '1'.repeat(5000) + 'mx',
      ['1'.repeat(5000) + 'mx'],
    ],
    ['text after an erased line', 'abcdef\x1b[2Kx\n', ['      x', '']],
    ['a line that is erased twice', 'abc\x1b[2K\rd\x1b[2Ke', [' e']],
    ['a wide letter takes two columns', '日本\rx', ['x 本']],
    ['a letter over the second half of a wide one', '日本\b\b\bx', [' x本']],
    ['a wide letter over narrow ones', 'abcd\r日', ['日cd']],
    ['surrogates stay together', '😀😀\rab', ['ab😀']],
    ['an erased half of a wide letter', '日本\b\x1b[K', ['日 ']],
    ['combining marks stay with their letter', 'e\u0301x\b\by', ['yx']],
    ['an order of letters that is turned around', 'a\u202eb', ['a\\u202eb']],
  ];
  it.each(cases)('%s', (_, written, lines) => {
    expect(text(written)).toEqual(lines);
  });

  it('keeps colours until they are reset', () => {
    expect(draw('\x1b[1;31mred\nstill\x1b[0m plain')).toEqual([
      [{ text: 'red', style: { color: 'red', bold: true } }],
      [{ text: 'still', style: { color: 'red', bold: true } }, { text: ' plain' }],
    ]);
  });

  const colours: [sequence: string, style: object][] = [
    ['\x1b[92m', { color: 'bright-green' }],
    ['\x1b[44m', { background: 'blue' }],
    ['\x1b[38;5;1m', { color: 'red' }],
    ['\x1b[38;5;196m', { color: 'rgb(255, 0, 0)' }],
    ['\x1b[38;5;244m', { color: 'rgb(128, 128, 128)' }],
    ['\x1b[38;2;1;2;3m', { color: 'rgb(1, 2, 3)' }],
    ['\x1b[3;4;9;7;2m', { italic: true, underline: true, strike: true, inverse: true, dim: true }],
  ];
  it.each(colours)('%j', (sequence, style) => {
    expect(draw(sequence + 'x')[0]).toEqual([{ text: 'x', style }]);
  });

  it('overwrites across colours', () => {
    expect(draw('\x1b[31mabc\x1b[0mdef\rXXXX')[0]).toEqual([{ text: 'XXXXef' }]);
  });

  it('cuts a line without end', () => {
    const [line] = text('x'.repeat(1_000_000));
    expect(line?.length).toBe(20_001);
    expect(line?.endsWith('…')).toBe(true);
  });

  // The work that drawing may cost for each unit of input, whatever the input.
  const budget = 6;
  const hostile: [name: string, written: string][] = [
    ['colours and backspaces', '\x1b[31ma\x1b[32mb'.repeat(4500) + '\bx'.repeat(40_000)],
    ['carriage returns and a newline', '\r'.repeat(90_000) + '\n'],
    ['carriage returns and letters', 'a'.repeat(20_000) + '\rx'.repeat(50_000)],
    [
      'erased lines that are written at their end',
      'a'.repeat(19_000) + '\x1b[2Kx\b'.repeat(20_000),
    ],
    ['lines cut at their beginning', 'a'.repeat(19_000) + '\r\x1b[K'.repeat(20_000)],
    ['sequences without end', '\x1b['.repeat(50_000)],
    ['commands without end', '\x1b]0;'.repeat(30_000)],
    ['parameters without end', '\x1b[' + '1;'.repeat(60_000)],
    ['marks on one letter', 'a' + '\u0301'.repeat(100_000)],
    ['a line without end', '日'.repeat(100_000)],
    ['newlines', '\n'.repeat(100_000)],
    ['hidden characters', '\u202e'.repeat(50_000)],
  ];
  it.each(hostile)('draws %s in linear work', (_, written) => {
    const terminal = new Terminal();
    terminal.write(written);
    const drawn = terminal.lines().reduce((sum, line) => sum + line.length, 0);
    expect(terminal.work).toBeLessThanOrEqual(budget * written.length);
    expect(drawn).toBeLessThanOrEqual(9000);
  });

  it('keeps few marks on a letter', () => {
    expect(text('a' + '\u0301'.repeat(1000))[0]?.length).toBe(17);
  });

  it('joins neighbours of one style', () => {
    expect(draw('\x1b[31ma\x1b[31mb')[0]).toEqual([{ text: 'ab', style: { color: 'red' } }]);
  });
});
