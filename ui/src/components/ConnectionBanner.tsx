import { IconPlugConnectedX } from '@tabler/icons-react';
import { describe, type Failure } from '../api/http';
import classes from './ConnectionBanner.module.css';

interface Props {
  failure: Failure;
  onRetry(): void;
}

export function ConnectionBanner({ failure, onRetry }: Props) {
  return (
    <div className={classes.banner} role="alert" data-testid="connection">
      <IconPlugConnectedX size={17} stroke={1.7} aria-hidden />
      <span>
        {failure.kind === 'refused'
          ? `Preheat answers with an error: ${describe(failure)}`
          : 'No connection to Preheat. Trying again …'}
      </span>
      <button type="button" className={classes.retry} onClick={onRetry}>
        Try now
      </button>
    </div>
  );
}
