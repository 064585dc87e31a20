import { describe, expect, it } from 'vitest';
import { allowsDeclaration } from './css';

describe('allowsDeclaration', () => {
  const cases: [property: string, value: string, allowed: boolean][] = [
    ['color', 'red', true],
    ['background-color', 'rgb(255, 0, 0)', true],
    ['color', 'color-mix(in srgb, red 10%, transparent)', true],
    ['background-image', 'linear-gradient(90deg, rgb(1, 2, 3) 50%, transparent 50%)', true],
    ['width', 'calc((100% - 2px) / 3)', true],
    ['width', 'calc(1px*(2 + 3))', true],
    ['font-family', '"IBM Plex Sans", sans-serif', true],
    ['content', '"a(b"', false],
    ['background-image', 'url("http://a.test/")', false],
    ['background-image', 'URL("http://a.test/")', false],
    ['background-image', 'url(data:image/png;base64,AA==)', false],
    ['background-image', 'linear-gradient(red, blue), url("//a.test")', false],
    ['background-image', 'image-set("http://a.test/" 1x)', false],
    ['background-image', '-webkit-image-set("http://a.test/" 1x)', false],
    ['background-image', 'cross-fade(url("//a.test"), red)', false],
    ['background-image', 'image("//a.test")', false],
    ['background-image', 'src("//a.test")', false],
    ['background-image', 'element(#a)', false],
    ['background-image', 'paint(a)', false],
    ['background-image', 'var(--a)', false],
    ['content', 'attr(title url)', false],
    ['--a', 'red', false],
    ['background-image', '\\75rl("//a.test")', false],
    ['content', '"</style><iframe>"', false],
  ];
  it.each(cases)('%s: %s → %s', (property, value, allowed) => {
    expect(allowsDeclaration(property, value)).toBe(allowed);
  });
});
