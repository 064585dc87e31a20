import { describe, expect, it } from 'vitest';
import { type PoolNews, watchPools } from './pools';
import { eventStream, fetchOf } from './testing';

const pools = (warm: number) =>
  `event: pools\ndata: ${JSON.stringify({ pools: [{ name: 'p', warm }] })}\n\n`;
const ping = 'event: ping\ndata: {}\n\n';

/** Watches until the answers are used up, without waiting. */
async function watch(...answers: (Response | Error)[]) {
  const abort = new AbortController();
  const { fetch, asked } = fetchOf(...answers);
  const news: PoolNews[] = [];
  const waits: number[] = [];
  await watchPools(
    (n) => news.push(n),
    abort.signal,
    fetch,
    async (ms) => {
      waits.push(ms);
      if (asked.length >= answers.length) abort.abort();
    },
  );
  return { news: news.map((n) => (n.type === 'pools' ? n.pools[0]?.warm : n.type)), waits };
}

describe('watchPools', () => {
  it('tells every state, and connects again after a loss', async () => {
    const { news } = await watch(
      eventStream([pools(2), ping, pools(1)], 'break'),
      eventStream([pools(2)]),
    );
    expect(news).toEqual([2, 1, 'lost', 2, 'lost']);
  });

  it('waits ever longer while nothing comes, and starts anew once something does', async () => {
    const down = () => new TypeError('Failed to fetch');
    const { waits } = await watch(down(), down(), down(), eventStream([pools(1)]), down());
    expect(waits.slice(0, 3)).toEqual([500, 1000, 2000]);
    expect(waits[3]).toBe(500);
  });

  it('stops asking a server that has no pool state', async () => {
    const { news, waits } = await watch(new Response('', { status: 404 }), eventStream([pools(1)]));
    expect(news).toEqual(['absent']);
    expect(waits).toEqual([]);
  });

  it('takes a malformed state for a loss', async () => {
    const { news } = await watch(eventStream(['event: pools\ndata: nope\n\n']));
    expect(news).toEqual(['lost']);
  });
});
