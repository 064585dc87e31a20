import type { RunEvent } from '../api/execute';
import type { Failure } from '../api/http';
import type { Artifact, Exit, Output, RichResult, Status } from '../api/types';
import { formatDuration } from '../format';
import { append, emptyLog, type OutputLog, plainText, type StreamName } from './output';

/** How a run ended: as the server said, or in a failure on the way. */
export type Ending = { kind: 'exit'; exit: Exit } | { kind: 'failure'; failure: Failure };

/** What a program made, in the order in which it made it. */
export type Section =
  { kind: 'output'; log: OutputLog } | { kind: 'result'; result: RichResult; number: number };

export interface RunState {
  phase: 'waiting' | 'running' | 'ended';
  sandbox: string;
  sections: Section[];
  artifacts: Artifact[];
  ending: Ending | null;
}

export const freshRun: RunState = {
  phase: 'waiting',
  sandbox: '',
  sections: [],
  artifacts: [],
  ending: null,
};

/** The state after some events, in order. Nothing changes a run that has ended. */
export function reduce(state: RunState, events: RunEvent[]): RunState {
  const next = { ...state };
  let output: StreamOutput[] = [];
  const flush = () => {
    if (output.length > 0) next.sections = withOutput(next.sections, output);
    output = [];
  };
  for (const event of events) {
    if (next.phase === 'ended') break;
    switch (event.type) {
      case 'start':
        next.phase = 'running';
        next.sandbox = event.start.sandbox_name;
        break;
      case 'output':
        output.push(event);
        break;
      case 'result':
        flush();
        next.sections = withResult(next.sections, event.result);
        break;
      case 'artifact':
        next.artifacts = [...next.artifacts, event.artifact];
        break;
      case 'exit':
        next.phase = 'ended';
        next.ending = { kind: 'exit', exit: event.exit };
        next.sandbox = event.exit.sandbox_name || next.sandbox;
        break;
      case 'failure':
        next.phase = 'ended';
        next.ending = { kind: 'failure', failure: event.failure };
        flush();
        if (next.sections.length === 0) output = partialOutput(event.failure);
        break;
    }
  }
  flush();
  return next;
}

type StreamOutput = { stream: StreamName; output: Output };

function withOutput(sections: Section[], news: StreamOutput[]): Section[] {
  const last = sections.at(-1);
  if (last?.kind === 'output') {
    return [...sections.slice(0, -1), { kind: 'output', log: append(last.log, news) }];
  }
  return [...sections, { kind: 'output', log: append(emptyLog, news) }];
}

function withResult(sections: Section[], result: RichResult): Section[] {
  const number = 1 + sections.filter((s) => s.kind === 'result').length;
  return [...sections, { kind: 'result', result, number }];
}

/** All that the program wrote, as plain text. */
export function writtenText({ sections }: RunState): string {
  return sections.map((s) => (s.kind === 'output' ? plainText(s.log) : '')).join('');
}

/** What the program had written when the platform gave up. */
function partialOutput(failure: Failure): StreamOutput[] {
  const partial = failure.kind === 'refused' ? failure.problem.partial : undefined;
  if (!partial) return [];
  return (['stdout', 'stderr'] as const)
    .filter((stream) => partial[stream])
    .map((stream) => ({ stream, output: { data: partial[stream], encoding: 'utf-8' } }));
}

export type Tone = 'busy' | 'good' | 'bad' | 'warn' | 'quiet';

/** A run's state in words. */
export interface Summary {
  tone: Tone;
  label: string;
  /** What the label alone does not say. */
  detail: string;
}

export function summarize(state: RunState): Summary {
  if (!state.ending) {
    return state.phase === 'waiting'
      ? { tone: 'busy', label: 'Waiting for a sandbox', detail: '' }
      : { tone: 'busy', label: 'Running', detail: '' };
  }
  return state.ending.kind === 'exit'
    ? summarizeExit(state.ending.exit)
    : summarizeFailure(state.ending.failure);
}

const labels: Record<Status, [Tone, string]> = {
  succeeded: ['good', 'Succeeded'],
  failed: ['bad', 'Failed'],
  timed_out: ['warn', 'Timed out'],
  out_of_memory: ['warn', 'Out of memory'],
  output_limit: ['warn', 'Output limit'],
  cancelled: ['quiet', 'Cancelled'],
  platform_error: ['bad', 'Platform error'],
};

function summarizeExit(exit: Exit): Summary {
  const [tone, label] = labels[exit.status];
  const summary = { tone, label, detail: '' };
  switch (exit.status) {
    case 'failed':
      return { ...summary, label: `${label}, ${exitWords(exit)}` };
    case 'timed_out':
      return { ...summary, detail: `The program was ended at its time limit${after(exit)}.` };
    case 'out_of_memory':
      return { ...summary, detail: 'The program was ended at its memory limit.' };
    case 'output_limit':
      return { ...summary, detail: 'The program was ended because it wrote too much.' };
    case 'platform_error':
      return {
        ...summary,
        detail: `${exit.problem?.detail || exit.problem?.title || 'The platform failed'}. What the program did is not known.`,
      };
  }
  return summary;
}

function exitWords(exit: Exit): string {
  if (exit.signal) return `${exit.signal}${exit.exit_code === null ? '' : ` (${exit.exit_code})`}`;
  return exit.exit_code === null ? 'no exit code' : `exit code ${exit.exit_code}`;
}

function after(exit: Exit): string {
  return exit.usage && exit.usage.wall_ms > 0
    ? `, after ${formatDuration(exit.usage.wall_ms)}`
    : '';
}

function summarizeFailure(failure: Failure): Summary {
  switch (failure.kind) {
    case 'stopped':
      return { tone: 'quiet', label: 'Stopped', detail: '' };
    case 'unreachable':
      return {
        tone: 'bad',
        label: 'No connection',
        detail: 'Preheat could not be reached. Check that it is running, then try again.',
      };
    case 'broken':
      return {
        tone: 'bad',
        label: 'Connection lost',
        detail: `The connection broke before the end; the result is unknown (${failure.detail}).`,
      };
    case 'refused':
      return summarizeProblem(failure);
  }
}

function summarizeProblem({ status, problem }: Failure & { kind: 'refused' }): Summary {
  const detail = [
    problem.field ? `${problem.field}: ` : '',
    problem.detail || problem.title,
    problem.retry_after_seconds ? ` Try again in ${problem.retry_after_seconds} s.` : '',
  ].join('');
  if (status === 429) return { tone: 'warn', label: 'No sandbox free', detail };
  return { tone: 'bad', label: status >= 500 ? 'Platform error' : 'Not accepted', detail };
}
