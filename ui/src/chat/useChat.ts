import { useCallback, useEffect, useReducer, useRef } from 'react';
import { streamChat } from '../api/chat';
import { asFailure } from '../api/http';
import { type Conversation, converse, isStreaming, toMessages } from './conversation';

/** How long text is gathered before it is drawn: longer for a text that takes longer to draw. */
const batchMs = (length: number) => Math.max(40, length / 400);

export interface Chat {
  conversation: Conversation;
  streaming: boolean;
  ask(question: string): void;
  retry(): void;
  stop(): void;
  clear(): void;
}

/** The conversation with a model; it lives as long as the page. */
export function useChat(): Chat {
  const [conversation, tell] = useReducer(converse, []);
  const abort = useRef<AbortController | null>(null);
  const turns = useRef(0);

  useEffect(() => () => abort.current?.abort(), []);

  const answer = useCallback(async (history: Conversation) => {
    const mine = new AbortController();
    abort.current = mine;
    const current = () => abort.current === mine;
    let text = '';
    let length = 0;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const flush = () => {
      clearTimeout(timer);
      timer = undefined;
      if (text && current()) tell({ type: 'text', text });
      text = '';
    };
    try {
      for await (const event of streamChat(toMessages(history), mine.signal)) {
        if (event.type === 'text') {
          text += event.text;
          length += event.text.length;
          timer ??= setTimeout(flush, batchMs(length));
        } else if (current()) {
          tell(event);
        }
      }
      flush();
      if (current()) tell({ type: 'done' });
    } catch (error) {
      flush();
      if (current()) tell({ type: 'failure', failure: asFailure(error, 'broken') });
    }
  }, []);

  const ask = useCallback(
    (question: string) => {
      const event = { type: 'ask' as const, id: String(++turns.current), content: question };
      tell(event);
      void answer(converse(conversation, event));
    },
    [answer, conversation],
  );

  const retry = useCallback(() => {
    tell({ type: 'retry' });
    void answer(converse(conversation, { type: 'retry' }));
  }, [answer, conversation]);

  const stop = useCallback(() => abort.current?.abort(), []);

  const clear = useCallback(() => {
    abort.current?.abort();
    abort.current = null;
    tell({ type: 'clear' });
  }, []);

  return { conversation, streaming: isStreaming(conversation), ask, retry, stop, clear };
}
