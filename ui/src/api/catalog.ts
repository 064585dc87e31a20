import { asFailure, CallError, type Fetch, getJSON } from './http';
import type { Language, Model } from './types';

export async function listLanguages(
  signal?: AbortSignal,
  fetch: Fetch = globalThis.fetch,
): Promise<Language[]> {
  const answer = await getJSON<{ languages: Language[] | null }>(fetch, '/v1/languages', signal);
  return answer.languages ?? [];
}

/** The model that answers, by name where that is known, and whether it is only the scripted demo. */
export interface ChatStatus {
  model: string;
  demo: boolean;
}

const demoModel = 'preheat-demo';

/**
 * Asks which model answers: Preheat's own status, or, of a server that has
 * none, the first model of its list.
 */
export async function chatStatus(
  signal?: AbortSignal,
  fetch: Fetch = globalThis.fetch,
): Promise<ChatStatus> {
  try {
    return await getJSON<ChatStatus>(fetch, '/v1/chat/status', signal);
  } catch (error) {
    const failure = asFailure(error, 'broken');
    if (failure.kind !== 'refused' || failure.status !== 404) throw error;
  }
  const answer = await getJSON<{ data: Model[] | null }>(fetch, '/v1/models', signal);
  const first = answer.data?.[0];
  if (!first) throw new CallError({ kind: 'broken', detail: 'the server lists no model' });
  return { model: first.id, demo: first.id === demoModel && first.owned_by === 'preheat' };
}

/**
 * Which language a fence's info word means: the language's own name, or
 * undefined when no pool runs it.
 */
export function runnable(languages: Language[], word: string | undefined): Language | undefined {
  if (!word) return undefined;
  const wanted = word.toLowerCase();
  return languages.find(
    (l) => l.name.toLowerCase() === wanted || l.aliases?.some((a) => a.toLowerCase() === wanted),
  );
}
