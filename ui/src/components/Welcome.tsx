import { IconChevronRight } from '@tabler/icons-react';
import type { PoolStatus } from '../api/types';
import classes from './Welcome.module.css';

const prompts: { title: string; prompt: string }[] = [
  { title: 'Say hello', prompt: 'Hi, how are you?' },
  {
    title: 'Python',
    prompt: 'Write Python code that generates a random excuse for being late to a meeting',
  },
  { title: 'A figure', prompt: 'Plot a damped sine wave with matplotlib' },
  { title: 'Bash', prompt: 'Show me a Bash one-liner' },
];

interface Props {
  pools: PoolStatus[] | null;
  onAsk(question: string): void;
}

export function Welcome({ pools, onAsk }: Props) {
  return (
    <div className={classes.welcome}>
      <h1 className={classes.title}>
        Ask for code.
        <br />
        Run it in a sandbox that is already warm.
      </h1>
      <p className={classes.lead}>
        Each run gets a fresh sandbox without a network, and the sandbox is thrown away afterwards.
        {pools && <> {warmWords(pools)}</>}
      </p>
      <ul className={classes.prompts} aria-label="Examples">
        {prompts.map(({ title, prompt }) => (
          <li key={prompt}>
            <button type="button" className={classes.prompt} onClick={() => onAsk(prompt)}>
              <span className={classes.promptTitle}>{title}</span>
              <span className={classes.promptText}>{prompt}</span>
              <IconChevronRight size={16} stroke={1.6} aria-hidden />
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

function warmWords(pools: PoolStatus[]): string {
  const warm = pools.reduce((sum, p) => sum + p.warm, 0);
  if (warm === 0) return 'None is warm right now.';
  return warm === 1 ? 'One is warm right now.' : `${warm} are warm right now.`;
}
