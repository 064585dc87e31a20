import { Popover, UnstyledButton } from '@mantine/core';
import type { ChatStatus } from '../api/catalog';
import classes from './ModelLabel.module.css';

/** Which model answers. The demo says what it is, and how to get a real one. */
export function ModelLabel({ chat }: { chat: ChatStatus }) {
  if (!chat.demo) {
    return (
      <span className={classes.model} data-testid="model">
        {chat.model ? `Model: ${chat.model}` : 'The model server’s own model answers'}
      </span>
    );
  }
  return (
    <Popover position="top-start" shadow="md" width={340} returnFocus>
      <Popover.Target>
        <UnstyledButton className={classes.demo} data-testid="model">
          Scripted demo, not a language model
        </UnstyledButton>
      </Popover.Target>
      <Popover.Dropdown className={classes.dropdown}>
        <p>
          <strong>{chat.model}</strong> answers a few prompts from a script. The sandboxes that run
          its code are real.
        </p>
        <p>
          A model that Ollama, llama.cpp or vLLM serves on this machine is found by itself. For any
          other OpenAI-compatible server, start Preheat with its address:
        </p>
        <pre className={classes.command}>
          PREHEAT_LLM_URL=http://127.0.0.1:11434/v1{'\n'}PREHEAT_LLM_MODEL=qwen2.5-coder{'\n'}
          PREHEAT_LLM_API_KEY=… <span className={classes.comment}># if it wants one</span>
        </pre>
      </Popover.Dropdown>
    </Popover>
  );
}
