/**
 * Characters that nobody sees, or that change the order of those that one sees:
 * a name or code that holds them reads as something else than it is. Joiners
 * (U+200C, U+200D) are not among them: emoji and several scripts need them.
 */
const hidden =
  /[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\u{e0000}-\u{e0fff}]|\u034f|\u17b4|\u17b5|[\ud800-\udfff]/gu;

const oneHidden = new RegExp(`^(?:${hidden.source})$`, 'u');

/** Whether a code point is hidden. Newlines and tabs are not. */
export function isHidden(code: number): boolean {
  if (code < 0x7f) return code < 0x20 && code !== 0x09 && code !== 0x0a;
  return oneHidden.test(String.fromCodePoint(code));
}

/** A code point as an escape that can be seen. */
export function visible(code: number): string {
  const digits = code.toString(16);
  return code > 0xffff ? `\\u{${digits}}` : `\\u${digits.padStart(4, '0')}`;
}

export interface Part {
  text: string;
  /** Whether the text stands for a hidden character. */
  hidden: boolean;
}

/** A text in parts, each hidden character as an escape of its own. */
export function parts(text: string): Part[] {
  const found: Part[] = [];
  let at = 0;
  for (const match of text.matchAll(hidden)) {
    if (match.index > at) found.push({ text: text.slice(at, match.index), hidden: false });
    found.push({ text: visible(match[0].codePointAt(0)!), hidden: true });
    at = match.index + match[0].length;
  }
  if (at < text.length) found.push({ text: text.slice(at), hidden: false });
  return found;
}

/** A text with its hidden characters as escapes, for where there is only text. */
export function reveal(text: string): string {
  return parts(text)
    .map((part) => part.text)
    .join('');
}

/** The same for a name, which has no lines and no tabs either. */
export function revealName(name: string): string {
  return reveal(name).replace(/[\t\n]/g, (c) => visible(c.charCodeAt(0)));
}
