import { useMemo, useState } from 'react';
import { sanitize } from '../html/sanitize';
import classes from './RichResults.module.css';

const framePolicy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

const frameStyle = `
  :root { color-scheme: light; }
  body { margin: 12px; font: 14px/1.5 system-ui, sans-serif; color: #211d19; background: #fff; }
  table { border-collapse: collapse; border: 0; font-variant-numeric: tabular-nums; }
  th, td { padding: 4px 12px; text-align: right; border: 0; border-bottom: 1px solid #e4dfd7; }
  th { font-weight: 600; }
`;

const tallestFrame = 480;

/**
 * HTML that a program made, sanitised. The frame runs no scripts and loads
 * nothing; it shares the page's origin only so that its height can be read,
 * which without scripts gives it nothing.
 */
export function HtmlFrame({ html, number }: { html: string; number: number }) {
  const [height, setHeight] = useState(120);
  const source = useMemo(
    () =>
      `<!doctype html><meta http-equiv="Content-Security-Policy" content="${framePolicy}">` +
      `<style>${frameStyle}</style><body>${sanitize(html)}`,
    [html],
  );
  return (
    <iframe
      className={classes.frame}
      title={`Result ${number} as HTML`}
      sandbox="allow-same-origin"
      srcDoc={source}
      style={{ height }}
      onLoad={(e) => {
        const root = e.currentTarget.contentDocument?.documentElement;
        if (root) setHeight(Math.min(tallestFrame, root.scrollHeight + 2));
      }}
    />
  );
}
