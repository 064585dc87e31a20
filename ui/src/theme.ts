import { createTheme, type MantineColorsTuple } from '@mantine/core';

/** From the glow of a heating element to its ember. */
const ember: MantineColorsTuple = [
  '#fff4ec',
  '#fce5d6',
  '#f8c9ab',
  '#f3ab7c',
  '#f09a5c',
  '#e07a36',
  '#c9591a',
  '#b3460f',
  '#94390c',
  '#782e0a',
];

/** Greys as warm as the rest; the components take theirs from these two. */
const gray: MantineColorsTuple = [
  '#faf8f5',
  '#f4f0ea',
  '#ebe6de',
  '#e0d9cf',
  '#cdc5b8',
  '#a79e92',
  '#857b6f',
  '#70675d',
  '#564f47',
  '#211d19',
];

const dark: MantineColorsTuple = [
  '#ece7e1',
  '#d8d1c9',
  '#b9b0a6',
  '#9b9186',
  '#4c453e',
  '#3c3630',
  '#2a2622',
  '#1f1c19',
  '#171513',
  '#131110',
];

export const theme = createTheme({
  colors: { ember, gray, dark },
  primaryColor: 'ember',
  primaryShade: 7,
  defaultRadius: 'md',
  cursorType: 'pointer',
  respectReducedMotion: true,
  fontFamily: "'IBM Plex Sans Variable', system-ui, sans-serif",
  fontFamilyMonospace: "'IBM Plex Mono', ui-monospace, monospace",
});
