import { describe, expect, it } from 'vitest';
import { execute } from './execute';
import { all, eventStream, fetchOf } from './testing';

const request = { language: 'python', code: 'print(1)' };
const event = (name: string, data: unknown) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
const start = event('start', { sandbox_name: 's-1', language: 'python', request_id: 'r' });
const output = event('stdout', { data: '1\n', encoding: 'utf-8' });
const exit = event('exit', {
  exit_code: 0,
  sandbox_name: 's-1',
  status: 'succeeded',
  signal: null,
});

const run = async (...answers: (Response | Error)[]) =>
  all(execute(request, new AbortController().signal, fetchOf(...answers).fetch, 20));

describe('execute', () => {
  it('asks for a stream and yields what happens, in order', async () => {
    const { fetch, asked } = fetchOf(eventStream([start, output, event('ping', {}), exit]));
    const events = await all(execute(request, new AbortController().signal, fetch));
    expect(events.map((e) => e.type)).toEqual(['start', 'output', 'exit']);
    expect(asked[0]?.path).toBe('/v1/sandbox/execute');
    expect(asked[0]?.init.headers).toMatchObject({ Accept: 'text/event-stream' });
    expect(JSON.parse(String(asked[0]?.init.body))).toEqual(request);
  });

  it('is over at the exit event, whatever the connection does after it', async () => {
    const events = await run(eventStream([start, exit, output], 'break'));
    expect(events.map((e) => e.type)).toEqual(['start', 'exit']);
  });

  it('leaves out events that it does not know', async () => {
    const events = await run(eventStream([event('confetti', {}), exit]));
    expect(events.map((e) => e.type)).toEqual(['exit']);
  });

  const broken: [name: string, answer: () => Response, detail: string][] = [
    ['nothing at all', () => eventStream([]), 'without an exit event'],
    ['a cut after the start', () => eventStream([start]), 'without an exit event'],
    ['a cut after output', () => eventStream([start, output]), 'without an exit event'],
    [
      'a cut inside the exit event',
      () => eventStream([start, exit.slice(0, -2)]),
      'without an exit',
    ],
    ['a reset', () => eventStream([start, output], 'break'), 'network error'],
    ['a silence', () => eventStream([start], 'hang'), 'nothing was received'],
    ['JSON in place of a stream', () => Response.json({ exit_code: 0 }), 'not an event stream'],
    ['an event that is not JSON', () => eventStream([start, 'event: exit\ndata: {\n\n']), '"exit"'],
    ['an exit without status', () => eventStream([event('exit', { exit_code: 0 })]), '"exit"'],
    ['an unknown status', () => eventStream([event('exit', { status: 'fine' })]), '"exit"'],
    ['output of another shape', () => eventStream([event('stdout', { data: 1 })]), '"stdout"'],
  ];
  for (const [name, answer, detail] of broken) {
    it(`takes ${name} for a broken stream`, async () => {
      const last = (await run(answer())).at(-1);
      expect(last).toMatchObject({ type: 'failure', failure: { kind: 'broken' } });
      expect(JSON.stringify(last)).toContain(JSON.stringify(detail).slice(1, -1));
    });
  }

  it('tells a server that is not there', async () => {
    expect(await run(new TypeError('Failed to fetch'))).toEqual([
      { type: 'failure', failure: { kind: 'unreachable' } },
    ]);
  });

  it('passes a problem document on', async () => {
    const problem = {
      type: 'urn:preheat:problem:no-sandbox',
      title: 'No sandbox',
      status: 429,
      detail: 'none',
    };
    const answer = new Response(JSON.stringify(problem), {
      status: 429,
      headers: { 'Content-Type': 'application/problem+json', 'Retry-After': '3' },
    });
    expect(await run(answer)).toEqual([
      {
        type: 'failure',
        failure: { kind: 'refused', status: 429, problem: { ...problem, retry_after_seconds: 3 } },
      },
    ]);
  });

  it('makes do with an error page of a proxy', async () => {
    const answer = new Response('<h1>Bad Gateway</h1>', {
      status: 502,
      statusText: 'Bad Gateway',
      headers: { 'Content-Type': 'text/html' },
    });
    expect((await run(answer))[0]).toMatchObject({
      failure: { kind: 'refused', status: 502, problem: { title: 'Bad Gateway', detail: '' } },
    });
  });

  it('says "stopped" and nothing else when it is stopped', async () => {
    const abort = new AbortController();
    const { fetch } = fetchOf(eventStream([start], 'hang'));
    const events = [];
    for await (const e of execute(request, abort.signal, fetch, 20)) {
      events.push(e);
      abort.abort();
    }
    expect(events.at(-1)).toEqual({ type: 'failure', failure: { kind: 'stopped' } });
  });
});
