import { ActionIcon, Textarea } from '@mantine/core';
import { IconArrowUp, IconPlayerStopFilled } from '@tabler/icons-react';
import { useEffect, useRef, useState } from 'react';
import classes from './Composer.module.css';

interface Props {
  streaming: boolean;
  onAsk(question: string): void;
  onStop(): void;
  footer: React.ReactNode;
}

export function Composer({ streaming, onAsk, onStop, footer }: Props) {
  const [text, setText] = useState('');
  const field = useRef<HTMLTextAreaElement>(null);

  // On a phone the keyboard would cover the page before anything was read.
  useEffect(() => {
    if (matchMedia('(pointer: fine)').matches) field.current?.focus();
  }, []);

  const send = () => {
    const question = text.trim();
    if (!question || streaming) return;
    setText('');
    onAsk(question);
  };

  return (
    <form
      className={classes.composer}
      onSubmit={(e) => {
        e.preventDefault();
        send();
      }}
    >
      <div className={classes.box}>
        <Textarea
          ref={field}
          classNames={{ root: classes.field, input: classes.input }}
          variant="unstyled"
          autosize
          minRows={1}
          maxRows={9}
          aria-label="Your message"
          placeholder="Ask for code, then run it"
          value={text}
          onChange={(e) => setText(e.currentTarget.value)}
          onKeyDown={(e) => {
            // An Enter that ends the composition of a character does not send.
            if (e.key === 'Enter' && !e.shiftKey && !e.nativeEvent.isComposing) {
              e.preventDefault();
              send();
            }
          }}
        />
        {streaming ? (
          <ActionIcon
            size={36}
            radius="xl"
            variant="default"
            aria-label="Stop answering"
            onClick={onStop}
          >
            <IconPlayerStopFilled size={15} />
          </ActionIcon>
        ) : (
          <ActionIcon
            size={36}
            radius="xl"
            type="submit"
            aria-label="Send"
            disabled={text.trim() === ''}
          >
            <IconArrowUp size={18} stroke={2.2} />
          </ActionIcon>
        )}
      </div>
      <div className={classes.footer}>
        <span>{footer}</span>
        <span className={classes.keys}>Enter sends, Shift+Enter starts a new line</span>
      </div>
    </form>
  );
}
