import { expect, it } from 'vitest';
import { formatBytes, formatDuration } from './format';

it.each([
  [0, '0 bytes'],
  [1, '1 byte'],
  [1023, '1023 bytes'],
  [1536, '1.5 KiB'],
  [16 * 1024 ** 2, '16.0 MiB'],
  [200 * 1024, '200 KiB'],
] as const)('formatBytes(%d)', (bytes, text) => {
  expect(formatBytes(bytes)).toBe(text);
});

it.each([
  [3.21, '3.2 ms'],
  [270.4, '270 ms'],
  [1500, '1.5 s'],
  [90_000, '1 min 30 s'],
] as const)('formatDuration(%d)', (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});
