import { describe, expect, it } from 'vitest';
import { fetchOf } from './testing';
import { describeReplicas, type KnativeService, listServices, nextListing } from './services';

const chat: KnativeService = {
  name: 'chat',
  ready: true,
  problem: '',
  url: 'http://chat.example.com',
  revision: 'chat-00001',
  replicas: 1,
};

describe('listServices', () => {
  it('gives what the server lists', async () => {
    const { fetch, asked } = fetchOf(Response.json({ services: [chat] }));
    expect(await listServices(undefined, fetch)).toEqual([chat]);
    expect(asked.map((a) => a.path)).toEqual(['/v1/services']);
  });

  it('takes null for none', async () => {
    const { fetch } = fetchOf(Response.json({ services: null }));
    expect(await listServices(undefined, fetch)).toEqual([]);
  });

  it('fails with the server', async () => {
    const { fetch } = fetchOf(new Response('', { status: 502 }));
    await expect(listServices(undefined, fetch)).rejects.toThrow();
  });
});

describe('nextListing', () => {
  it('is soon only where there are Services', () => {
    expect(nextListing([chat])).toBeLessThan(nextListing([]));
  });
});

describe('describeReplicas', () => {
  it.each([
    [0, 'scaled to zero'],
    [1, '1 replica'],
    [2, '2 replicas'],
  ])('%i → %s', (replicas, text) => {
    expect(describeReplicas(replicas)).toBe(text);
  });
});
