/** Longer sequences are none: their escape is dropped, and the rest is text. */
const longest = 4096;

const ESC = 0x1b;

/**
 * The end of the escape sequence that begins at index at of text: a control
 * sequence (ECMA-48), an operating system command, or another escape. A
 * sequence that the text ends within ends with the text.
 */
export function sequenceEnd(text: string, at: number): number {
  const limit = Math.min(text.length, at + longest);
  switch (text[at + 1]) {
    case '[':
      return controlSequenceEnd(text, at, limit);
    case ']':
      return commandEnd(text, at, limit);
  }
  let end = at + 1;
  while (end < limit && inRange(text, end, 0x20, 0x2f)) end++;
  if (end >= limit) return unended(text, at, limit);
  return inRange(text, end, 0x30, 0x7e) ? end + 1 : at + 1;
}

function controlSequenceEnd(text: string, at: number, limit: number): number {
  let end = at + 2;
  while (end < limit && inRange(text, end, 0x30, 0x3f)) end++;
  while (end < limit && inRange(text, end, 0x20, 0x2f)) end++;
  if (end >= limit) return unended(text, at, limit);
  return inRange(text, end, 0x40, 0x7e) ? end + 1 : at + 2;
}

function commandEnd(text: string, at: number, limit: number): number {
  for (let end = at + 2; end < limit; end++) {
    const unit = text.charCodeAt(end);
    if (unit === 0x07) return end + 1;
    // Any other escape breaks the command off.
    if (unit === ESC) return text[end + 1] === '\\' ? end + 2 : end;
  }
  return unended(text, at, limit);
}

function unended(text: string, at: number, limit: number): number {
  return limit === text.length ? limit : Math.min(at + 2, limit);
}

function inRange(text: string, at: number, low: number, high: number): boolean {
  const unit = text.charCodeAt(at);
  return unit >= low && unit <= high;
}

/**
 * The first index from at on where text can be cut: not within an escape
 * sequence or a surrogate pair.
 */
export function safeCut(text: string, at: number): number {
  if (at <= 0) return 0;
  if (at >= text.length) return text.length;
  const escape = text.lastIndexOf('\x1b', at - 1);
  if (escape >= 0 && at - escape < longest) {
    const end = sequenceEnd(text, escape);
    if (end > at) return end;
  }
  return isPair(text, at) ? at + 1 : at;
}

function isPair(text: string, at: number): boolean {
  return inRange(text, at - 1, 0xd800, 0xdbff) && inRange(text, at, 0xdc00, 0xdfff);
}
