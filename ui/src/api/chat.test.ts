import { describe, expect, it } from 'vitest';
import { streamChat } from './chat';
import { CallError } from './http';
import { all, eventStream, fetchOf } from './testing';

const messages = [{ role: 'user' as const, content: 'hi' }];
const chunk = (content: string, finish: string | null = null) =>
  `data: ${JSON.stringify({ choices: [{ delta: { content }, finish_reason: finish }] })}\n\n`;
const done = 'data: [DONE]\n\n';

const chat = (...answers: (Response | Error)[]) =>
  all(streamChat(messages, new AbortController().signal, fetchOf(...answers).fetch));

const failure = async (...answers: (Response | Error)[]) => {
  const error = await chat(...answers).catch((e: unknown) => e);
  expect(error).toBeInstanceOf(CallError);
  return (error as CallError).failure;
};

describe('streamChat', () => {
  it('yields the pieces of the answer until [DONE]', async () => {
    const events = await chat(
      eventStream([
        'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n',
        chunk('Hel') + chunk('lo'),
        chunk('', 'stop'),
        'data: {"choices":[],"usage":{"total_tokens":3}}\n\n',
        done,
      ]),
    );
    expect(events).toEqual([
      { type: 'text', text: 'Hel' },
      { type: 'text', text: 'lo' },
      { type: 'finish', reason: 'stop' },
    ]);
  });

  it('sends the conversation and asks for a stream', async () => {
    const { fetch, asked } = fetchOf(eventStream([done]));
    await all(streamChat(messages, new AbortController().signal, fetch));
    expect(JSON.parse(String(asked[0]?.init.body))).toEqual({ messages, stream: true });
  });

  it('takes an end without [DONE] for an error', async () => {
    expect(await failure(eventStream([chunk('Hel'), chunk('', 'stop')]))).toEqual({
      kind: 'broken',
      detail: 'the answer broke off before its end',
    });
  });

  it('tells an error inside the stream in the words of the model server', async () => {
    const error = 'data: {"error":{"message":"out of memory","type":"server_error"}}\n\n';
    expect(await failure(eventStream([chunk('Hel'), error, done]))).toEqual({
      kind: 'broken',
      detail: 'out of memory',
    });
  });

  it('tells an upstream error with its status', async () => {
    const answer = Response.json({ error: { message: 'bad key', type: 'auth' } }, { status: 401 });
    expect(await failure(answer)).toMatchObject({
      kind: 'refused',
      status: 401,
      problem: { detail: 'bad key', title: 'auth' },
    });
  });

  it('tells a broken connection, a missing server and garbage apart', async () => {
    expect(await failure(eventStream([chunk('a')], 'break'))).toMatchObject({ kind: 'broken' });
    expect(await failure(new TypeError('Failed to fetch'))).toEqual({ kind: 'unreachable' });
    expect(await failure(eventStream(['data: {nope\n\n']))).toMatchObject({ kind: 'broken' });
    expect(await failure(Response.json({}))).toMatchObject({ kind: 'broken' });
  });

  it('is stopped by its signal', async () => {
    const abort = new AbortController();
    abort.abort();
    const { fetch } = fetchOf(eventStream([done]));
    await expect(all(streamChat(messages, abort.signal, fetch))).rejects.toMatchObject({
      failure: { kind: 'stopped' },
    });
  });
});
