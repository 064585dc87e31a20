import { describe, expect, it } from 'vitest';
import { isHidden, parts, reveal, revealName } from './hidden';

describe('reveal', () => {
  const cases: [name: string, text: string, shown: string][] = [
    ['a right-to-left override', 'report\u202egpj.exe', 'report\\u202egpj.exe'],
    ['isolates', '\u2066a\u2069', '\\u2066a\\u2069'],
    ['marks of direction', 'a\u200e\u200f\u061c', 'a\\u200e\\u200f\\u061c'],
    ['controls', 'a\0\x1b[31m\x7f\x85', 'a\\u0000\\u001b[31m\\u007f\\u0085'],
    ['spaces without width', 'a\u200bb\ufeff', 'a\\u200bb\\ufeff'],
    ['letters that are blank', '\u3164\u115f', '\\u3164\\u115f'],
    ['separators of lines', 'a\u2028b', 'a\\u2028b'],
    ['tags', 'a\u{e0041}', 'a\\u{e0041}'],
    ['half a pair', 'a\ud800', 'a\\ud800'],
    ['lines and tabs stay', 'a\n\tb', 'a\n\tb'],
    ['other scripts stay', 'שלום مرحبا 日本 می‌خواهم', 'שלום مرحبا 日本 می‌خواهم'],
    ['emoji stay', '👩‍💻 ❤️', '👩‍💻 ❤️'],
  ];
  it.each(cases)('%s', (_, text, shown) => {
    expect(reveal(text)).toBe(shown);
  });

  it('shows lines and tabs of a name', () => {
    expect(revealName('a\n\t.txt')).toBe('a\\u000a\\u0009.txt');
  });

  it('tells an escape from the same letters', () => {
    expect(parts('\\u202e\u202e')).toEqual([
      { text: '\\u202e', hidden: false },
      { text: '\\u202e', hidden: true },
    ]);
  });

  it('agrees with isHidden', () => {
    for (let code = 0; code <= 0x10ffff; code++) {
      const text = String.fromCodePoint(code);
      if ((reveal(text) !== text) !== isHidden(code)) expect.fail(`U+${code.toString(16)}`);
    }
  });
});
