import { describe, expect, it } from 'vitest';
import { Terminal } from './terminal';

const draw = (...writes: string[]) => {
  const terminal = new Terminal();
  for (const text of writes) terminal.write(text);
  return terminal.lines;
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
    expect(draw('\x1b[31mabc\x1b[0mdef\rXXXX')[0]).toEqual([{ text: 'XXXX' }, { text: 'ef' }]);
  });

  it('cuts a line without end', () => {
    const [line] = text('x'.repeat(1_000_000));
    expect(line?.length).toBe(20_000);
    expect(line?.endsWith('…')).toBe(true);
  });
});
