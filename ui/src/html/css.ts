/**
 * What a program's style sheets may say. The functions take what the browser's
 * own CSS parser made of them, in which no escape can hide a name.
 */

/** Functions whose arguments cannot name anything outside of the page. */
const functions = new Set([
  'rgb',
  'rgba',
  'hsl',
  'hsla',
  'hwb',
  'lab',
  'lch',
  'oklab',
  'oklch',
  'color',
  'color-mix',
  'light-dark',
  'linear-gradient',
  'radial-gradient',
  'conic-gradient',
  'repeating-linear-gradient',
  'repeating-radial-gradient',
  'repeating-conic-gradient',
  'calc',
  'min',
  'max',
  'clamp',
]);

/**
 * Whether a declaration may stay. Custom properties keep their text unparsed,
 * so they go, and with them var().
 */
export function allowsDeclaration(property: string, value: string): boolean {
  if (value === '' || property.startsWith('--') || /[\\<]/.test(value)) return false;
  return [...value.matchAll(/([^\s(),/*+]*)\(/g)].every(
    ([, name]) => name === '' || functions.has(name!.toLowerCase()),
  );
}

/** The allowed declarations of a rule or an attribute, as text. */
export function cleanDeclarations(style: CSSStyleDeclaration): string {
  return Array.from(style)
    .filter((property) => allowsDeclaration(property, style.getPropertyValue(property)))
    .map((property) => {
      const important = style.getPropertyPriority(property) ? ' !important' : '';
      return `${property}: ${style.getPropertyValue(property)}${important};`;
    })
    .join(' ');
}

/**
 * A style sheet's plain rules, with their allowed declarations. Rules that
 * begin with @ go: tables need none, and several of them load files.
 */
export function cleanStyleSheet(text: string): string {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(text);
  return Array.from(sheet.cssRules)
    .filter((rule) => rule instanceof CSSStyleRule && !rule.selectorText.includes('<'))
    .map((rule) => {
      const { selectorText, style } = rule as CSSStyleRule;
      return `${selectorText} { ${cleanDeclarations(style)} }`;
    })
    .join('\n');
}
