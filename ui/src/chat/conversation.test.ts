import { describe, expect, it } from 'vitest';
import {
  type Conversation,
  type ConversationEvent,
  converse,
  isStreaming,
  toMessages,
} from './conversation';

const play = (...events: ConversationEvent[]) => events.reduce<Conversation>(converse, []);
const ask: ConversationEvent = { type: 'ask', id: '1', content: 'q' };
const text = (t: string): ConversationEvent => ({ type: 'text', text: t });

describe('converse', () => {
  it('adds the answer piece by piece to its question', () => {
    const talk = play(ask, text('a'), text('b'));
    expect(isStreaming(talk)).toBe(true);
    expect(toMessages(talk)).toEqual([
      { role: 'user', content: 'q' },
      { role: 'assistant', content: 'ab' },
    ]);
    expect(isStreaming(converse(talk, { type: 'done' }))).toBe(false);
  });

  it('keeps a stopped answer, and what failed with its failure', () => {
    const stopped = play(ask, text('a'), { type: 'failure', failure: { kind: 'stopped' } });
    expect(stopped.at(-1)).toMatchObject({ content: 'a', state: 'stopped' });
    const failed = play(ask, text('a'), { type: 'failure', failure: { kind: 'unreachable' } });
    expect(failed.at(-1)).toMatchObject({ state: 'failed', failure: { kind: 'unreachable' } });
  });

  it('does not tell the model of an answer that never came', () => {
    const failed = play(ask, { type: 'failure', failure: { kind: 'unreachable' } });
    expect(toMessages(failed)).toEqual([{ role: 'user', content: 'q' }]);
  });

  it('changes no answer that has ended', () => {
    const done = play(ask, text('a'), { type: 'done' });
    expect(converse(done, text('late'))).toBe(done);
    expect(converse([], text('late'))).toEqual([]);
  });

  it('asks again in place of the answer, under another id', () => {
    const failed = play(ask, { type: 'failure', failure: { kind: 'unreachable' } });
    const again = converse(failed, { type: 'retry' });
    expect(again).toHaveLength(2);
    expect(isStreaming(again)).toBe(true);
    expect(again.at(-1)?.id).not.toBe(failed.at(-1)?.id);
    expect(converse(again, { type: 'retry' })).toBe(again);
  });

  it('begins anew', () => {
    expect(play(ask, text('a'), { type: 'clear' })).toEqual([]);
  });
});
