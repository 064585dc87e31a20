import {
  IconAlertTriangle,
  IconCheck,
  IconCircleMinus,
  IconCopy,
  IconDownload,
  IconX,
} from '@tabler/icons-react';
import { memo, useEffect, useMemo, useRef, useState } from 'react';
import { formatDuration } from '../format';
import { useCopy } from '../hooks/useCopy';
import { useServices } from '../hooks/services';
import { blocks } from '../run/rows';
import {
  type RunState,
  type Section,
  type Summary,
  summarize,
  type Tone,
  writtenText,
} from '../run/state';
import type { Run } from '../run/store';
import { Name, Revealed } from '../text/Revealed';
import { Artifacts } from './Artifacts';
import { downloadText } from './download';
import { OutputView } from './OutputView';
import { RichResult } from './RichResult';
import classes from './RunPanel.module.css';

interface Props {
  run: Run;
  onRetry(): void;
}

export function RunPanel({ run, onRetry }: Props) {
  const { announce } = useServices();
  const { state } = run;
  const summary = summarize(state);
  const silent = state.sections.length === 0 && state.artifacts.length === 0;

  const panel = useInView(state.phase);

  useEffect(() => {
    announce(`${summary.label}. ${summary.detail}`);
  }, [announce, summary.label, summary.detail]);

  return (
    <div
      ref={panel}
      className={classes.panel}
      role="group"
      aria-label="Output"
      data-run-state={state.ending ? summary.tone : state.phase}
    >
      <StatusBar run={run} summary={summary} />
      {state.sections.map((section, i) => (
        <SectionView
          key={i}
          section={section}
          follow={state.phase === 'running' && i === state.sections.length - 1}
        />
      ))}
      <Artifacts artifacts={state.artifacts} />
      {state.ending?.kind === 'exit' && summary.tone === 'good' && silent && (
        <p className={classes.quiet}>The program wrote nothing.</p>
      )}
      <Notes run={run} summary={summary} onRetry={onRetry} />
    </div>
  );
}

const SectionView = memo(function SectionView(props: { section: Section; follow: boolean }) {
  const { section, follow } = props;
  const drawn = useMemo(() => (section.kind === 'output' ? blocks(section.log) : []), [section]);
  if (section.kind === 'result') return <RichResult {...section} />;
  return drawn.length > 0 && <OutputView blocks={drawn} follow={follow} />;
});

/** Brings the panel into view when its run begins, and whole when it ends in view. */
function useInView(phase: RunState['phase']) {
  const panel = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const el = panel.current;
    if (!el) return;
    const { top } = el.getBoundingClientRect();
    if (phase !== 'ended' || (top > 0 && top < innerHeight))
      el.scrollIntoView({ block: 'nearest' });
  }, [phase]);
  return panel;
}

function StatusBar({ run, summary }: { run: Run; summary: Summary }) {
  const { state } = run;
  const { copied, copy } = useCopy();
  return (
    <div className={classes.status}>
      <span className={classes.chip} data-tone={summary.tone} data-testid="run-status">
        <ToneIcon tone={summary.tone} />
        {summary.label}
      </span>
      <Elapsed run={run} />
      {state.sandbox && (
        <span className={classes.sandbox} title="The sandbox that ran it, and only it">
          <span className={classes.sandboxWord}>in </span>
          <span data-testid="sandbox-name">
            <Name name={state.sandbox} />
          </span>
        </span>
      )}
      {state.phase === 'ended' && state.sections.some((s) => s.kind === 'output') && (
        <span className={classes.tools}>
          <button
            type="button"
            className={classes.tool}
            aria-label={copied ? 'Copied' : 'Copy output'}
            onClick={() => void copy(writtenText(state))}
          >
            {copied ? <IconCheck size={14} stroke={1.7} /> : <IconCopy size={14} stroke={1.7} />}
          </button>
          <button
            type="button"
            className={classes.tool}
            aria-label="Download output"
            onClick={() => downloadText('output.txt', writtenText(state))}
          >
            <IconDownload size={14} stroke={1.7} />
          </button>
        </span>
      )}
    </div>
  );
}

/** The program's own time once it is known; until then the time that has passed here. */
function Elapsed({ run }: { run: Run }) {
  const running = run.state.phase !== 'ended';
  const [now, setNow] = useState(() => performance.now());
  useEffect(() => {
    if (!running) return;
    const timer = setInterval(() => setNow(performance.now()), 100);
    return () => clearInterval(timer);
  }, [running]);
  const exit = run.state.ending?.kind === 'exit' ? run.state.ending.exit : undefined;
  const measured = exit?.timings_ms?.total || exit?.usage?.wall_ms;
  const ms = measured ?? Math.max(0, (run.endedAt ?? now) - run.startedAt);
  return (
    <span className={classes.duration} aria-hidden={running} data-testid="duration">
      {formatDuration(running ? Math.floor(ms / 100) * 100 : ms)}
    </span>
  );
}

function ToneIcon({ tone }: { tone: Tone }) {
  switch (tone) {
    case 'busy':
      return <span className={classes.spinner} aria-hidden />;
    case 'good':
      return <IconCheck size={14} stroke={2.2} aria-hidden />;
    case 'bad':
      return <IconX size={14} stroke={2.2} aria-hidden />;
    case 'warn':
      return <IconAlertTriangle size={14} stroke={2} aria-hidden />;
    case 'quiet':
      return <IconCircleMinus size={14} stroke={2} aria-hidden />;
  }
}

function Notes({ run, summary, onRetry }: Props & { summary: Summary }) {
  const { ending } = run.state;
  const notes = ending?.kind === 'exit' ? (ending.exit.notes ?? []) : [];
  const canRetry = ending?.kind === 'failure' && ending.failure.kind !== 'stopped';
  if (!summary.detail && notes.length === 0) return null;
  return (
    <div className={classes.notes}>
      {summary.detail && (
        <p className={classes.detail} data-tone={summary.tone} data-testid="run-detail">
          <Revealed text={summary.detail} />
        </p>
      )}
      {notes.map((note, i) => (
        <p key={i} className={classes.quiet}>
          <Revealed text={note} />
        </p>
      ))}
      {canRetry && (
        <button type="button" className={classes.retry} onClick={onRetry}>
          Run again
        </button>
      )}
    </div>
  );
}
