import { useId } from 'react';
import classes from './CodeEditor.module.css';

/** What will run in place of the code as it was written. */
export interface Draft {
  code: string;
  stdin: string;
}

interface Props {
  draft: Draft;
  onChange(draft: Draft): void;
  onRun(): void;
}

/** Plain text fields: Tab moves on, as everywhere on the page. */
export function CodeEditor({ draft, onChange, onRun }: Props) {
  const id = useId();
  const runOnCtrlEnter = (event: React.KeyboardEvent) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      onRun();
    }
  };
  return (
    <div className={classes.editor}>
      <textarea
        className={classes.code}
        aria-label="Code to run"
        spellCheck={false}
        autoCapitalize="off"
        autoCorrect="off"
        rows={Math.min(24, Math.max(3, draft.code.split('\n').length))}
        value={draft.code}
        onKeyDown={runOnCtrlEnter}
        onChange={(e) => onChange({ ...draft, code: e.currentTarget.value })}
      />
      <label className={classes.label} htmlFor={`${id}-stdin`}>
        Standard input
      </label>
      <textarea
        id={`${id}-stdin`}
        className={classes.stdin}
        spellCheck={false}
        rows={1}
        placeholder="empty"
        value={draft.stdin}
        onKeyDown={runOnCtrlEnter}
        onChange={(e) => onChange({ ...draft, stdin: e.currentTarget.value })}
      />
      <span className={classes.hint}>Ctrl+Enter runs it</span>
    </div>
  );
}
