import type { Code, Root } from 'mdast';
import type { CompileContext, Extension } from 'mdast-util-from-markdown';
import type { Processor } from 'unified';

declare module 'mdast' {
  interface CodeData {
    /** How many fences the parser saw: none, the opening one, or both. */
    fences?: number;
  }
}

/** What a code element says about its fences, as properties of its hast element. */
export interface FenceProperties {
  /** "indented", "open" or "closed". */
  dataFence?: 'indented' | 'open' | 'closed';
  /** The first word of the info string. */
  dataLang?: string;
  /** Where the block begins in the source, which is where it stays as text is added. */
  dataStart?: number;
}

/**
 * A remark plugin that marks each code block with the parser's own knowledge
 * of whether its closing fence has come. The text between cannot tell: what
 * looks like a fence may be content of a longer fence, of a fence of the other
 * kind, or indented too far.
 *
 * While text is still coming, a closing fence at the very end is not one yet:
 * the next character may make it content.
 */
export function remarkFences(this: Processor, options: { streaming: boolean }) {
  const data = this.data() as { fromMarkdownExtensions?: (Extension | Extension[])[] };
  (data.fromMarkdownExtensions ??= []).push({ enter: { codeFencedFence: countFence } });
  return (tree: Root, file: { value: unknown }) => {
    mark(tree, String(file.value), options.streaming);
  };
}

function countFence(this: CompileContext) {
  const code = this.stack.findLast((node): node is Code => node.type === 'code');
  if (code) code.data = { ...code.data, fences: (code.data?.fences ?? 0) + 1 };
}

function mark(node: Root | Root['children'][number], source: string, streaming: boolean) {
  if (node.type === 'code') {
    const properties: FenceProperties = {
      dataFence: fenceOf(node, source, streaming),
      dataStart: node.position?.start.offset ?? 0,
      ...(node.lang ? { dataLang: node.lang } : {}),
    };
    node.data = { ...node.data, hProperties: { ...properties } };
  }
  if ('children' in node) {
    for (const child of node.children) mark(child as Root['children'][number], source, streaming);
  }
}

function fenceOf(node: Code, source: string, streaming: boolean): FenceProperties['dataFence'] {
  const fences = node.data?.fences ?? 0;
  if (fences === 0) return 'indented';
  if (fences === 1) return 'open';
  const end = node.position?.end.offset ?? source.length;
  return streaming && !/^[ \t]*[\r\n]/.test(source.slice(end)) ? 'open' : 'closed';
}
