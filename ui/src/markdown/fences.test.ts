import type { Root } from 'mdast';
import remarkParse from 'remark-parse';
import { unified } from 'unified';
import { visit } from 'unist-util-visit';
import { describe, expect, it } from 'vitest';
import { type FenceProperties, remarkFences } from './fences';

interface Found extends FenceProperties {
  code: string;
}

function codeBlocks(source: string, streaming = false): Found[] {
  const processor = unified().use(remarkParse).use(remarkFences, { streaming });
  const tree = processor.runSync(processor.parse(source), { value: source } as never) as Root;
  const found: Found[] = [];
  visit(tree, 'code', (node) => {
    found.push({ ...(node.data?.hProperties as FenceProperties), code: node.value });
  });
  return found;
}

const cases: [
  name: string,
  source: string,
  blocks: [fence: string, lang: string, code: string][],
][] = [
  ['backticks', '```python\nx\n```', [['closed', 'python', 'x']]],
  ['tildes', '~~~python\nx\n~~~', [['closed', 'python', 'x']]],
  ['tildes around backticks', '~~~md\n```py\n~~~', [['closed', 'md', '```py']]],
  ['backticks do not close tildes', '~~~python\nx\n```', [['open', 'python', 'x\n```']]],
  ['four hold three', '````md\n```python\nx\n```\n````', [['closed', 'md', '```python\nx\n```']]],
  ['three do not close four', '````python\nx\n```', [['open', 'python', 'x\n```']]],
  ['a longer fence closes', '```python\nx\n`````', [['closed', 'python', 'x']]],
  ['unclosed', '```python\nx', [['open', 'python', 'x']]],
  ['only opened', '```python', [['open', 'python', '']]],
  ['empty', '```python\n```', [['closed', 'python', '']]],
  ['an info string with more', '```python title=x\ny\n```', [['closed', 'python', 'y']]],
  ['no info string', '```\ny\n```', [['closed', '', 'y']]],
  ['text after the closing fence', '```python\nx\n``` y', [['open', 'python', 'x\n``` y']]],
  ['blanks after the closing fence', '```python\nx\n```  \t\n', [['closed', 'python', 'x']]],
  ['a fence indented by three', '   ```python\n   x\n   ```', [['closed', 'python', 'x']]],
  ['a closing fence indented by four', '```python\nx\n    ```', [['open', 'python', 'x\n    ```']]],
  ['indented code', '    print(1)\n', [['indented', '', 'print(1)']]],
  [
    'indented code that looks like a fence',
    '    ```python\n    x\n    ```\n',
    [['indented', '', '```python\nx\n```']],
  ],
  ['in a list', '- a\n\n  ```python\n  x\n  ```\n', [['closed', 'python', 'x']]],
  ['a list that ends before the fence', '- ```python\n  x\n\nend', [['open', 'python', 'x']]],
  ['in a quote', '> ```python\n> x\n> ```', [['closed', 'python', 'x']]],
  ['a quoted fence as content', '> ```python\n> > ```', [['open', 'python', '> ```']]],
  ['a quote that ends before the fence', '> ```python\n> x\n\ny', [['open', 'python', 'x']]],
  ['carriage returns', '```python\r\nx\r\n```\r\n', [['closed', 'python', 'x']]],
  ['inline code over lines', 'a ```python b\nc``` d', []],
  [
    'two',
    '```py\n1\n```\n\n```sh\n2\n```',
    [
      ['closed', 'py', '1'],
      ['closed', 'sh', '2'],
    ],
  ],
];

describe('remarkFences', () => {
  it.each(cases)('%s', (_, source, blocks) => {
    expect(codeBlocks(source).map((b) => [b.dataFence, b.dataLang ?? '', b.code])).toEqual(blocks);
  });

  it.each(cases)('while it streams, closed is final: %s', (_, source) => {
    const whole = source + '\n\nmore';
    const final = codeBlocks(whole);
    for (let end = 0; end <= whole.length; end++) {
      for (const block of codeBlocks(whole.slice(0, end), true)) {
        if (block.dataFence === 'closed') expect(final).toContainEqual(block);
      }
    }
  });

  it('waits for the end of the closing line while it streams', () => {
    expect(codeBlocks('```py\n1\n```', true)[0]?.dataFence).toBe('open');
    expect(codeBlocks('```py\n1\n```\n', true)[0]?.dataFence).toBe('closed');
    expect(codeBlocks('```py\n1\n```', false)[0]?.dataFence).toBe('closed');
  });
});
