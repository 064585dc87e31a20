import { memo, useEffect, useRef } from 'react';
import { formatBytes } from '../format';
import type { Block } from '../run/rows';
import type { Span, TextStyle } from '../run/terminal';
import classes from './OutputView.module.css';

interface Props {
  blocks: Block[];
  /** Keep the end in view while more may come. */
  follow: boolean;
}

export const OutputView = memo(function OutputView({ blocks, follow }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);

  useEffect(() => {
    const el = frame.current;
    if (el && follow && atEnd.current) el.scrollTop = el.scrollHeight;
  }, [blocks, follow]);

  return (
    <div
      ref={frame}
      role="group"
      className={classes.output}
      tabIndex={0}
      aria-label="What the program wrote"
      data-testid="output"
      onScroll={(e) => {
        const el = e.currentTarget;
        atEnd.current = el.scrollHeight - el.scrollTop - el.clientHeight < 24;
      }}
    >
      {blocks.map((block, i) => (
        <BlockView key={i} block={block} />
      ))}
    </div>
  );
});

function BlockView({ block }: { block: Block }) {
  switch (block.kind) {
    case 'gap':
      return <p className={classes.gap}>… {block.text} …</p>;
    case 'bytes':
      return (
        <div className={classes.stretch} data-stream={block.stream}>
          {block.stream === 'stderr' && <span className={classes.tag}>stderr</span>}
          <div className={classes.bytes}>
            <span className={classes.bytesTag}>
              {formatBytes(block.bytes)}, not text, as base64
            </span>{' '}
            {block.base64.length > 256 ? `${block.base64.slice(0, 256)}…` : block.base64}
          </div>
        </div>
      );
    case 'lines':
      return (
        <div className={classes.stretch} data-stream={block.stream}>
          {block.stream === 'stderr' && <span className={classes.tag}>stderr</span>}
          {block.lines.map((line, i) => (
            <div key={i} className={classes.line}>
              {line.length === 0 ? '\n' : line.map((span, j) => <SpanView key={j} span={span} />)}
            </div>
          ))}
        </div>
      );
  }
}

function SpanView({ span }: { span: Span }) {
  return span.style ? <span style={css(span.style)}>{span.text}</span> : span.text;
}

function css(style: TextStyle): React.CSSProperties {
  const color = colorValue(style.color);
  const background = colorValue(style.background);
  const decoration = [style.underline && 'underline', style.strike && 'line-through'];
  return {
    color: style.inverse ? (background ?? 'var(--output-page)') : color,
    backgroundColor: style.inverse ? (color ?? 'var(--ink)') : background,
    fontWeight: style.bold ? 600 : undefined,
    opacity: style.dim ? 0.75 : undefined,
    fontStyle: style.italic ? 'italic' : undefined,
    textDecorationLine: decoration.filter(Boolean).join(' ') || undefined,
  };
}

/** Named colours follow the page's scheme. */
function colorValue(color: string | undefined): string | undefined {
  if (!color) return undefined;
  return color.startsWith('rgb(') ? color : `var(--ansi-${color})`;
}
