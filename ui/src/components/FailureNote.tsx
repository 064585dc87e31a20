import { IconAlertCircle } from '@tabler/icons-react';
import { describe, type Failure } from '../api/http';
import { Revealed } from '../text/Revealed';
import classes from './FailureNote.module.css';

interface Props {
  failure: Failure;
  title: string;
  onRetry: (() => void) | undefined;
}

export function FailureNote({ failure, title, onRetry }: Props) {
  return (
    <div className={classes.note} role="alert">
      <IconAlertCircle size={18} stroke={1.7} aria-hidden />
      <div>
        <strong className={classes.title}>{title}</strong>
        <p className={classes.text}>
          <Revealed text={sentence(failure)} />
        </p>
        {onRetry && (
          <button type="button" className={classes.retry} onClick={onRetry}>
            Try again
          </button>
        )}
      </div>
    </div>
  );
}

function sentence(failure: Failure): string {
  const text = describe(failure);
  if (failure.kind === 'refused') {
    const wait = failure.problem.retry_after_seconds;
    return `${text} (HTTP status ${failure.status}${wait ? `, try again in ${wait} s` : ''})`;
  }
  return text.charAt(0).toUpperCase() + text.slice(1) + (text.endsWith('.') ? '' : '.');
}
