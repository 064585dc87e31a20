import { lazy, Suspense, useState } from 'react';
import type { RichResult as Result } from '../api/types';
import { formatBytes } from '../format';
import { Revealed } from '../text/Revealed';
import classes from './RichResults.module.css';

// The sanitiser is code that most runs do not need.
const HtmlFrame = lazy(() => import('./HtmlFrame').then((m) => ({ default: m.HtmlFrame })));

export function RichResult({ result, number }: { result: Result; number: number }) {
  return (
    <div className={classes.results}>
      <ResultView result={result} number={number} />
    </div>
  );
}

function ResultView({ result, number }: { result: Result; number: number }) {
  switch (result.mime) {
    case 'image/png':
    case 'image/jpeg':
    case 'image/gif':
    case 'image/webp':
      return <Picture src={`data:${result.mime};base64,${result.data}`} number={number} />;
    case 'image/svg+xml':
      // As an image an SVG can neither run scripts nor fetch anything.
      return <Picture src={svgURL(result.data)} number={number} />;
    case 'text/html':
      return (
        <Suspense fallback={null}>
          <HtmlFrame html={result.data} number={number} />
        </Suspense>
      );
    case 'application/json':
      return (
        <pre className={classes.text}>
          <Revealed text={prettyJSON(result.data)} />
        </pre>
      );
  }
  if (result.mime.startsWith('text/'))
    return (
      <pre className={classes.text}>
        <Revealed text={result.data} />
      </pre>
    );
  return (
    <p className={classes.unknown}>
      A result of type <Revealed text={result.mime} /> ({formatBytes(result.data.length)}) that the
      page cannot show.
    </p>
  );
}

function Picture({ src, number }: { src: string; number: number }) {
  const [broken, setBroken] = useState(false);
  if (broken) return <p className={classes.unknown}>Figure {number} is not a valid picture.</p>;
  return (
    <a
      className={classes.picture}
      href={src}
      download={`figure-${number}.${src.startsWith('data:image/svg') ? 'svg' : 'png'}`}
      title="Download this figure"
    >
      <img
        src={src}
        alt={`Figure ${number} that the program drew`}
        onError={() => setBroken(true)}
      />
    </a>
  );
}

/** SVG comes as base64 or, from a server that counts it as text, as it is. */
function svgURL(data: string): string {
  return data.trimStart().startsWith('<')
    ? `data:image/svg+xml;charset=utf-8,${encodeURIComponent(data)}`
    : `data:image/svg+xml;base64,${data}`;
}

function prettyJSON(data: string): string {
  try {
    return JSON.stringify(JSON.parse(data), null, 2);
  } catch {
    return data;
  }
}
