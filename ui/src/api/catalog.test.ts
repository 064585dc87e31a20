import { describe, expect, it } from 'vitest';
import { chatStatus, runnable } from './catalog';
import { fetchOf } from './testing';

const python = { name: 'python', aliases: ['py', 'python3'], version: '3', warm: true, pools: [] };
const bash = { name: 'bash', aliases: null, version: '', warm: false, pools: null };

describe('runnable', () => {
  const cases: [word: string | undefined, name: string | undefined][] = [
    ['python', 'python'],
    ['Python', 'python'],
    ['py', 'python'],
    ['bash', 'bash'],
    ['rust', undefined],
    ['', undefined],
    [undefined, undefined],
  ];
  it.each(cases)('%s → %s', (word, name) => {
    expect(runnable([python, bash], word)?.name).toBe(name);
  });
});

describe('chatStatus', () => {
  it('asks Preheat itself', async () => {
    const answer = { model: '', demo: false, upstream: 'configured' };
    const { fetch, asked } = fetchOf(Response.json(answer));
    expect(await chatStatus(undefined, fetch)).toEqual(answer);
    expect(asked.map((a) => a.path)).toEqual(['/v1/chat/status']);
  });

  it('knows the demo in a list by its name and its owner', async () => {
    const none = new Response('', { status: 404 });
    const status = async (data: unknown) =>
      chatStatus(undefined, fetchOf(none.clone(), Response.json({ data })).fetch);
    expect(await status([{ id: 'preheat-demo', owned_by: 'preheat' }])).toEqual({
      model: 'preheat-demo',
      demo: true,
    });
    expect(await status([{ id: 'qwen', owned_by: 'library' }])).toEqual({
      model: 'qwen',
      demo: false,
    });
    await expect(status([])).rejects.toThrow('no model');
  });
});
