import { VisuallyHidden } from '@mantine/core';
import { lazy, memo, Suspense } from 'react';
import type { Message } from '../chat/conversation';
import { FailureNote } from './FailureNote';
import classes from './MessageView.module.css';

// The Markdown parser and the highlighter are much of the page's code; the page
// is usable before they have come.
const load = () => import('../markdown/Markdown');
const Markdown = lazy(() => load().then((m) => ({ default: m.Markdown })));

/** Fetches what answers need, so that the first one does not wait for it. */
export function preloadMarkdown(): void {
  // A failure shows when the first answer is drawn; here it is nobody's concern.
  load().catch(() => undefined);
}

interface Props {
  message: Message;
  /** Asks again; only for the last message. */
  onRetry: (() => void) | undefined;
}

export const MessageView = memo(function MessageView({ message, onRetry }: Props) {
  if (message.role === 'user') {
    return (
      <article className={classes.question} aria-label="You">
        <div className={classes.bubble}>{message.content}</div>
      </article>
    );
  }
  const streaming = message.state === 'streaming';
  return (
    <article
      className={classes.answer}
      aria-label="Answer"
      aria-busy={streaming}
      data-state={message.state}
    >
      {message.content ? (
        <Suspense fallback={<p className={classes.plain}>{message.content}</p>}>
          <Markdown source={message.content} streaming={streaming} id={message.id} />
        </Suspense>
      ) : (
        streaming && <Thinking />
      )}
      {message.finish === 'length' && (
        <p className={classes.note}>The answer was cut at the model’s length limit.</p>
      )}
      {message.state === 'stopped' && <p className={classes.note}>Stopped.</p>}
      {message.failure && (
        <FailureNote
          failure={message.failure}
          title={message.content ? 'The answer is not complete' : 'No answer came'}
          onRetry={onRetry}
        />
      )}
    </article>
  );
});

function Thinking() {
  return (
    <p className={classes.thinking}>
      <VisuallyHidden>The model is working</VisuallyHidden>
      <i />
      <i />
      <i />
    </p>
  );
}
