import { describe, expect, it } from 'vitest';
import type { RunEvent } from '../api/execute';
import type { Failure } from '../api/http';
import type { Exit, Problem } from '../api/types';
import { freshRun, reduce, summarize, writtenText } from './state';

const start: RunEvent = {
  type: 'start',
  start: { sandbox_name: 's-1', language: 'python', request_id: 'r' },
};
const out = (data: string): RunEvent => ({
  type: 'output',
  stream: 'stdout',
  output: { data, encoding: 'utf-8' },
});
const exit = (more: Partial<Exit>): RunEvent => ({
  type: 'exit',
  exit: { exit_code: 0, sandbox_name: 's-1', status: 'succeeded', signal: null, ...more },
});
const failed = (failure: Failure): RunEvent => ({ type: 'failure', failure });
const problem = (more: Partial<Problem>): Problem => ({
  type: '',
  title: 'T',
  status: 500,
  detail: '',
  ...more,
});

describe('reduce', () => {
  it('goes from waiting to running to ended', () => {
    expect(freshRun.phase).toBe('waiting');
    const running = reduce(freshRun, [start, out('a')]);
    expect(running).toMatchObject({ phase: 'running', sandbox: 's-1', ending: null });
    const ended = reduce(running, [out('b'), exit({})]);
    expect(ended.phase).toBe('ended');
    expect(writtenText(ended)).toBe('ab');
  });

  it('gives the same state however the events are batched', () => {
    const events: RunEvent[] = [
      start,
      out('a'),
      {
        type: 'result',
        result: { mime: 'image/png', data: 'AA==', position: 0, alternatives: [] },
      },
      out('b'),
      {
        type: 'artifact',
        artifact: { path: 'a', size: 1, mime: '', encoding: 'utf-8', content: 'x', omitted: '' },
      },
      exit({}),
    ];
    const oneByOne = events.reduce((state, event) => reduce(state, [event]), freshRun);
    expect(reduce(freshRun, events)).toEqual(oneByOne);
  });

  it('keeps results where they were displayed', () => {
    const shown = (data: string): RunEvent => ({
      type: 'result',
      result: { mime: 'text/plain', data, position: 0, alternatives: [] },
    });
    const { sections } = reduce(freshRun, [
      start,
      out('a'),
      out('b'),
      shown('1'),
      shown('2'),
      out('c'),
    ]);
    expect(
      sections.map((s) => (s.kind === 'result' ? [s.number, s.result.data] : 'output')),
    ).toEqual(['output', [1, '1'], [2, '2'], 'output']);
  });

  it('changes nothing after the end', () => {
    const ended = reduce(freshRun, [start, exit({ status: 'failed', exit_code: 1 })]);
    expect(reduce(ended, [out('late'), exit({}), start])).toEqual(ended);
  });

  it('keeps the output of a stream that broke, without calling it a success', () => {
    const state = reduce(freshRun, [
      start,
      out('all good'),
      failed({ kind: 'broken', detail: 'cut' }),
    ]);
    expect(writtenText(state)).toBe('all good');
    expect(summarize(state).tone).toBe('bad');
  });

  it('shows the partial output that an error carries', () => {
    const partial = { stdout: 'half', stderr: '', sandbox_name: 's' };
    const refused = failed({ kind: 'refused', status: 502, problem: problem({ partial }) });
    expect(writtenText(reduce(freshRun, [refused]))).toBe('half');
    expect(writtenText(reduce(freshRun, [out('whole'), refused]))).toBe('whole');
  });
});

describe('summarize', () => {
  const cases: [events: RunEvent[], tone: string, label: string, detail: RegExp][] = [
    [[], 'busy', 'Waiting for a sandbox', /^$/],
    [[start], 'busy', 'Running', /^$/],
    [[exit({})], 'good', 'Succeeded', /^$/],
    [[exit({ status: 'failed', exit_code: 3 })], 'bad', 'Failed, exit code 3', /^$/],
    [
      [exit({ status: 'failed', exit_code: 139, signal: 'SIGSEGV' })],
      'bad',
      'Failed, SIGSEGV (139)',
      /^$/,
    ],
    [[exit({ status: 'timed_out', exit_code: 137 })], 'warn', 'Timed out', /time limit/],
    [[exit({ status: 'out_of_memory', exit_code: 137 })], 'warn', 'Out of memory', /memory limit/],
    [[exit({ status: 'output_limit', exit_code: 137 })], 'warn', 'Output limit', /too much/],
    [[exit({ status: 'cancelled', exit_code: 137 })], 'quiet', 'Cancelled', /^$/],
    [
      [
        exit({
          status: 'platform_error',
          exit_code: null,
          problem: problem({ detail: 'lost it' }),
        }),
      ],
      'bad',
      'Platform error',
      /^lost it\. What the program did is not known\.$/,
    ],
    [[start, failed({ kind: 'stopped' })], 'quiet', 'Stopped', /^$/],
    [[failed({ kind: 'unreachable' })], 'bad', 'No connection', /could not be reached/],
    [
      [start, failed({ kind: 'broken', detail: 'cut' })],
      'bad',
      'Connection lost',
      /broke before the end; the result is unknown \(cut\)/,
    ],
    [
      [
        failed({
          kind: 'refused',
          status: 422,
          problem: problem({ field: 'code', detail: 'is empty' }),
        }),
      ],
      'bad',
      'Not accepted',
      /^code: is empty$/,
    ],
    [
      [
        failed({
          kind: 'refused',
          status: 429,
          problem: problem({ detail: 'Full.', retry_after_seconds: 2 }),
        }),
      ],
      'warn',
      'No sandbox free',
      /^Full\. Try again in 2 s\.$/,
    ],
    [
      [failed({ kind: 'refused', status: 503, problem: problem({}) })],
      'bad',
      'Platform error',
      /^T$/,
    ],
  ];
  it.each(cases)('%#', (events, tone, label, detail) => {
    const summary = summarize(reduce(freshRun, events));
    expect(summary).toMatchObject({ tone, label });
    expect(summary.detail).toMatch(detail);
  });
});
