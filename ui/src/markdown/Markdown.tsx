import type { Element } from 'hast';
import { createContext, memo, useContext } from 'react';
import ReactMarkdown, { type Components, type ExtraProps } from 'react-markdown';
import remarkGfm from 'remark-gfm';
import { CodeBlock } from '../components/CodeBlock';
import { type FenceProperties, remarkFences } from './fences';
import classes from './Markdown.module.css';

interface Props {
  source: string;
  /** Whether more text may come. */
  streaming: boolean;
  /** Unique among the page's texts; the runs of its code are kept under it. */
  id: string;
}

/** The text that is being drawn; its code blocks name their runs after it. */
const TextID = createContext('');

// Defined once: a component that is made anew on each draw loses its state.
const components: Components = {
  pre: Pre,
  a: ({ href, children }) => (
    <a href={href} target="_blank" rel="noreferrer noopener">
      {children}
    </a>
  ),
  // Fetching a picture would tell its server what is being read here.
  img: ({ src, alt }) => (
    <a href={String(src ?? '')} target="_blank" rel="noreferrer noopener">
      {alt || String(src ?? '')}
    </a>
  ),
  table: ({ children }) => (
    <div className={classes.tableFrame} tabIndex={0} role="group" aria-label="Table">
      <table>{children}</table>
    </div>
  ),
};

/** A text of the model. Raw HTML in it stays text, and pictures stay links. */
export const Markdown = memo(function Markdown({ source, streaming, id }: Props) {
  return (
    <TextID value={id}>
      <div className={classes.prose}>
        <ReactMarkdown
          remarkPlugins={[remarkGfm, [remarkFences, { streaming }]]}
          components={components}
        >
          {source}
        </ReactMarkdown>
      </div>
    </TextID>
  );
});

function Pre({ node }: ExtraProps) {
  const id = useContext(TextID);
  const code = node?.children.find((c): c is Element => c.type === 'element');
  const properties = (code?.properties ?? {}) as FenceProperties;
  return (
    <CodeBlock
      runKey={`${id}:${properties.dataStart ?? 0}`}
      code={textOf(code)}
      word={properties.dataLang}
      closed={properties.dataFence === 'closed'}
    />
  );
}

function textOf(element: Element | undefined): string {
  const text = element?.children.map((c) => (c.type === 'text' ? c.value : '')).join('') ?? '';
  // The serializer adds the newline that ends the last line.
  return text.replace(/\n$/, '');
}
