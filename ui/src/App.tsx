import { VisuallyHidden } from '@mantine/core';
import { IconArrowDown } from '@tabler/icons-react';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import classes from './App.module.css';
import { useChat } from './chat/useChat';
import { Composer } from './components/Composer';
import { ConnectionBanner } from './components/ConnectionBanner';
import { Header } from './components/Header';
import { MessageView, preloadMarkdown } from './components/MessageView';
import { ModelLabel } from './components/ModelLabel';
import { Welcome } from './components/Welcome';
import { ServicesProvider } from './hooks/services';
import { usePlatform } from './hooks/usePlatform';
import { useStickToBottom } from './hooks/useStickToBottom';
import { RunStore } from './run/store';

export function App() {
  const platform = usePlatform();
  const chat = useChat();
  const [runs] = useState(() => new RunStore());
  const [spoken, announce] = useState('');
  const { frame, content, away, toBottom } = useStickToBottom(chat.streaming);
  const services = useMemo(
    () => ({ runs, languages: platform.languages, announce }),
    [runs, platform.languages],
  );

  const ask = useCallback(
    (question: string) => {
      chat.ask(question);
      toBottom();
    },
    [chat, toBottom],
  );
  const clear = () => {
    chat.clear();
    runs.clear();
  };
  useAnnouncedAnswer(chat.streaming, announce);
  useEffect(preloadMarkdown, []);

  return (
    <ServicesProvider value={services}>
      <div className={classes.app}>
        <Header
          pools={platform.pools}
          services={platform.services}
          canClear={chat.conversation.length > 0}
          onClear={clear}
        />
        {platform.failure && (
          <ConnectionBanner failure={platform.failure} onRetry={platform.reconnect} />
        )}
        <main className={classes.main}>
          <div className={classes.scroll} ref={frame}>
            <div className={classes.column} ref={content}>
              {chat.conversation.length === 0 ? (
                <Welcome pools={platform.pools} onAsk={ask} />
              ) : (
                <>
                  <VisuallyHidden component="h1">Conversation</VisuallyHidden>
                  {chat.conversation.map((message, i) => (
                    <MessageView
                      key={message.id}
                      message={message}
                      onRetry={i === chat.conversation.length - 1 ? chat.retry : undefined}
                    />
                  ))}
                </>
              )}
            </div>
          </div>
          <div className={classes.bottom}>
            {away && (
              <button
                type="button"
                className={classes.latest}
                onClick={toBottom}
                aria-label="Go to the latest"
                title="Go to the latest"
              >
                <IconArrowDown size={17} stroke={1.8} aria-hidden />
              </button>
            )}
            <Composer
              streaming={chat.streaming}
              onAsk={ask}
              onStop={chat.stop}
              footer={platform.chat && <ModelLabel chat={platform.chat} />}
            />
          </div>
        </main>
        <VisuallyHidden component="output" aria-live="polite">
          {spoken}
        </VisuallyHidden>
      </div>
    </ServicesProvider>
  );
}

function useAnnouncedAnswer(streaming: boolean, announce: (text: string) => void) {
  const was = useRef(false);
  useEffect(() => {
    if (streaming !== was.current) {
      announce(streaming ? 'The model is answering.' : 'The answer has ended.');
    }
    was.current = streaming;
  }, [streaming, announce]);
}
