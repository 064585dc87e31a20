import type { Element, ElementContent, Root, Text } from 'hast';
import { parts } from './hidden';
import classes from './Revealed.module.css';

/** The tree with its hidden characters as marked escapes. */
export function revealTree(tree: Root): Root {
  return { ...tree, children: tree.children.flatMap((node) => revealNode(node as ElementContent)) };
}

function revealNode(node: ElementContent): ElementContent[] {
  if (node.type === 'text') return revealText(node);
  if (node.type !== 'element') return [node];
  return [{ ...node, children: node.children.flatMap(revealNode) }];
}

function revealText(node: Text): ElementContent[] {
  return parts(node.value).map(({ text, hidden }): Text | Element =>
    hidden
      ? {
          type: 'element',
          tagName: 'span',
          properties: { className: [classes.hidden ?? ''] },
          children: [{ type: 'text', value: text }],
        }
      : { type: 'text', value: text },
  );
}
