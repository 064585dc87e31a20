import { type Fetch, getJSON } from './http';

/** A Knative Service of the platform. */
export interface KnativeService {
  name: string;
  ready: boolean;
  problem: string;
  url: string;
  revision: string;
  replicas: number;
}

/** Lists the platform's Knative Services: none where it does not run on a cluster. */
export async function listServices(
  signal?: AbortSignal,
  fetch: Fetch = globalThis.fetch,
): Promise<KnativeService[]> {
  const answer = await getJSON<{ services: KnativeService[] | null }>(
    fetch,
    '/v1/services',
    signal,
  );
  return answer.services ?? [];
}

const oftenMs = 3_000;
const seldomMs = 30_000;

/** How long to wait before asking again: where there are none, hardly any will come. */
export function nextListing(services: KnativeService[]): number {
  return services.length > 0 ? oftenMs : seldomMs;
}

/** One line about a Service's Pods. */
export function describeReplicas(replicas: number): string {
  if (replicas === 0) return 'scaled to zero';
  return replicas === 1 ? '1 replica' : `${replicas} replicas`;
}
