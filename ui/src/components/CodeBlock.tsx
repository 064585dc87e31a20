import { Button, Tooltip } from '@mantine/core';
import {
  IconCheck,
  IconCopy,
  IconPencil,
  IconPlayerPlayFilled,
  IconPlayerStopFilled,
} from '@tabler/icons-react';
import { toJsxRuntime } from 'hast-util-to-jsx-runtime';
import { memo, useMemo, useState } from 'react';
import { Fragment, jsx, jsxs } from 'react/jsx-runtime';
import { runnable } from '../api/catalog';
import { useCopy } from '../hooks/useCopy';
import { useRun, useServices } from '../hooks/services';
import { highlight } from '../markdown/highlight';
import { Revealed } from '../text/Revealed';
import { revealTree } from '../text/tree';
import { CodeEditor, type Draft } from './CodeEditor';
import classes from './CodeBlock.module.css';
import { RunPanel } from './RunPanel';

interface Props {
  /** Where the outputs of this code are kept. */
  runKey: string;
  code: string;
  /** The first word of the fence's info string. */
  word: string | undefined;
  /** Whether the code is whole: only then may it be copied and run. */
  closed: boolean;
}

export const CodeBlock = memo(function CodeBlock({ runKey, code, word, closed }: Props) {
  const { runs, languages } = useServices();
  const [draft, setDraft] = useState<Draft | null>(null);
  const { copied, copy } = useCopy();
  const run = useRun(runKey);
  const language = closed ? runnable(languages, word) : undefined;
  const busy = run !== undefined && run.state.phase !== 'ended';

  const start = () => {
    if (!language || busy) return;
    void runs.start(runKey, {
      language: language.name,
      code: draft?.code ?? code,
      ...(draft?.stdin ? { stdin: draft.stdin } : {}),
    });
  };

  return (
    <figure className={classes.block} data-closed={closed}>
      <figcaption className={classes.bar}>
        <span className={classes.language}>
          <Revealed text={language?.name ?? word ?? 'text'} />
          {draft && <span className={classes.edited}> · edited here</span>}
        </span>
        {closed && (
          <span className={classes.actions}>
            {language && (
              <BarButton
                label={draft ? 'Discard edits' : 'Edit'}
                icon={<IconPencil size={15} stroke={1.7} />}
                pressed={draft !== null}
                onClick={() => setDraft(draft ? null : { code, stdin: '' })}
              />
            )}
            <BarButton
              label={copied ? 'Copied' : 'Copy'}
              icon={
                copied ? <IconCheck size={15} stroke={1.7} /> : <IconCopy size={15} stroke={1.7} />
              }
              onClick={() => void copy(draft?.code ?? code)}
            />
            {language &&
              (busy ? (
                <Button
                  size="compact-sm"
                  variant="default"
                  leftSection={<IconPlayerStopFilled size={13} />}
                  onClick={() => runs.stop(runKey)}
                >
                  Stop
                </Button>
              ) : (
                <Button
                  size="compact-sm"
                  leftSection={<IconPlayerPlayFilled size={13} />}
                  onClick={start}
                  aria-label={`Run this ${language.name} code`}
                >
                  Run
                </Button>
              ))}
          </span>
        )}
      </figcaption>
      {draft ? (
        <CodeEditor draft={draft} onChange={setDraft} onRun={start} />
      ) : (
        <Code code={code} word={word} />
      )}
      {run && <RunPanel run={run} onRetry={start} />}
    </figure>
  );
});

const Code = memo(function Code({ code, word }: { code: string; word: string | undefined }) {
  const content = useMemo(() => {
    const tree = highlight(code, word);
    return tree ? (
      toJsxRuntime(revealTree(tree), { Fragment, jsx, jsxs })
    ) : (
      <Revealed text={code} />
    );
  }, [code, word]);
  return (
    <pre className={classes.code} tabIndex={0} aria-label={`${word ?? 'Plain'} code`}>
      <code>{content}</code>
    </pre>
  );
});

interface BarButtonProps {
  label: string;
  icon: React.ReactNode;
  pressed?: boolean;
  onClick(): void;
}

function BarButton({ label, icon, pressed, onClick }: BarButtonProps) {
  return (
    <Tooltip label={label} openDelay={400}>
      <button
        type="button"
        className={classes.barButton}
        aria-label={label}
        aria-pressed={pressed}
        onClick={onClick}
      >
        {icon}
      </button>
    </Tooltip>
  );
}
