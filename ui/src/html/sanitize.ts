import createDOMPurify, { type Config } from 'dompurify';
import { cleanDeclarations, cleanStyleSheet } from './css';

/** What tables and formatted text need, and nothing that can name an address but a picture. */
const tags =
  'table caption colgroup col thead tbody tfoot tr th td ' +
  'div p span br hr h1 h2 h3 h4 h5 h6 blockquote ' +
  'ul ol li dl dt dd details summary figure figcaption ' +
  'b strong i em u s small sub sup mark abbr ' +
  'pre code kbd samp var img style #text';

const attributes =
  'class id style title dir lang role open src alt ' +
  'width height align valign border cellpadding cellspacing bgcolor ' +
  'colspan rowspan scope headers span start type value reversed';

const config: Config = {
  ALLOWED_TAGS: tags.split(' '),
  ALLOWED_ATTR: attributes.split(' '),
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  // A style sheet before the first element would otherwise be lost with the head.
  FORCE_BODY: true,
};

const picture = /^data:image\/(?:png|jpeg|gif|webp|svg\+xml)[;,]/i;

const purifier = createDOMPurify(window);

purifier.addHook('uponSanitizeElement', (node, { tagName }) => {
  if (tagName === 'style') node.textContent = cleanStyleSheet(node.textContent ?? '');
});

purifier.addHook('uponSanitizeAttribute', (node, data) => {
  if (data.attrName === 'style') {
    // The document that is being cleaned has no view, but it parses styles.
    data.attrValue = cleanDeclarations((node as HTMLElement).style);
    data.keepAttr = data.attrValue !== '';
  } else if (data.attrName === 'src') {
    data.keepAttr = node.nodeName === 'IMG' && picture.test(data.attrValue);
  }
});

/**
 * Returns html without anything that could make a browser look up or connect
 * to an address: what a program knows could leave in the name of a host. A
 * content policy does not stop that; browsers connect before they ask it.
 */
export function sanitize(html: string): string {
  return purifier.sanitize(html, config);
}
