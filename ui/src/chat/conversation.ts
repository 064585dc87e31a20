import type { Failure } from '../api/http';
import type { ChatMessage } from '../api/types';

export type Message =
  | { id: string; role: 'user'; content: string }
  | {
      id: string;
      role: 'assistant';
      content: string;
      state: 'streaming' | 'complete' | 'stopped' | 'failed';
      failure?: Failure;
      /** Why the model ended, when that is worth telling. */
      finish?: string;
    };

export type Conversation = Message[];

export type ConversationEvent =
  | { type: 'ask'; id: string; content: string }
  | { type: 'text'; text: string }
  | { type: 'finish'; reason: string }
  | { type: 'done' }
  | { type: 'failure'; failure: Failure }
  /** Ask the last question again, in place of its answer. */
  | { type: 'retry' }
  | { type: 'clear' };

export function converse(conversation: Conversation, event: ConversationEvent): Conversation {
  switch (event.type) {
    case 'ask':
      return [
        ...conversation,
        { id: `${event.id}q`, role: 'user', content: event.content },
        { id: `${event.id}a`, role: 'assistant', content: '', state: 'streaming' },
      ];
    case 'clear':
      return [];
    case 'text':
      return answer(conversation, (m) => ({ ...m, content: m.content + event.text }));
    case 'finish':
      return answer(conversation, (m) => ({ ...m, finish: event.reason }));
    case 'done':
      return answer(conversation, (m) => ({ ...m, state: 'complete' }));
    case 'failure':
      return answer(conversation, (m) =>
        event.failure.kind === 'stopped'
          ? { ...m, state: 'stopped' }
          : { ...m, state: 'failed', failure: event.failure },
      );
    case 'retry': {
      const last = conversation.at(-1);
      if (last?.role !== 'assistant' || last.state === 'streaming') return conversation;
      // A new id, so that outputs of the old answer's code do not show below the new one's.
      return [
        ...conversation.slice(0, -1),
        { id: `${last.id}+`, role: 'assistant', content: '', state: 'streaming' },
      ];
    }
  }
}

type Answer = Message & { role: 'assistant' };

/** Changes the answer that is coming in; without one there is nothing to change. */
function answer(conversation: Conversation, change: (m: Answer) => Answer): Conversation {
  const last = conversation.at(-1);
  if (last?.role !== 'assistant' || last.state !== 'streaming') return conversation;
  return [...conversation.slice(0, -1), change(last)];
}

export function isStreaming(conversation: Conversation): boolean {
  const last = conversation.at(-1);
  return last?.role === 'assistant' && last.state === 'streaming';
}

/** What the model is told: everything that was said, without answers that never came. */
export function toMessages(conversation: Conversation): ChatMessage[] {
  return conversation
    .filter((m) => m.content !== '')
    .map(({ role, content }) => ({ role, content }));
}
