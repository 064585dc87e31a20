import {
  ActionIcon,
  Button,
  Tooltip,
  useComputedColorScheme,
  useMantineColorScheme,
} from '@mantine/core';
import { IconMoon, IconPlus, IconSun } from '@tabler/icons-react';
import type { KnativeService } from '../api/services';
import type { PoolStatus } from '../api/types';
import classes from './Header.module.css';
import { PoolMeter } from './PoolMeter';

interface Props {
  pools: PoolStatus[] | null;
  services: KnativeService[];
  canClear: boolean;
  onClear(): void;
}

export function Header({ pools, services, canClear, onClear }: Props) {
  return (
    <header className={classes.header}>
      <div className={classes.brand}>
        <Mark />
        <span>Preheat</span>
      </div>
      <div className={classes.tools}>
        {pools && pools.length > 0 && <PoolMeter pools={pools} services={services} />}
        <Button
          className={classes.newChat}
          size="compact-md"
          variant="default"
          leftSection={<IconPlus size={15} stroke={1.8} />}
          disabled={!canClear}
          onClick={onClear}
          aria-label="New chat"
        >
          <span className={classes.wide}>New chat</span>
        </Button>
        <SchemeToggle />
      </div>
    </header>
  );
}

function SchemeToggle() {
  const { setColorScheme } = useMantineColorScheme();
  const dark = useComputedColorScheme('light') === 'dark';
  const label = dark ? 'Use light colours' : 'Use dark colours';
  return (
    <Tooltip label={label} openDelay={400}>
      <ActionIcon
        size={30}
        variant="subtle"
        color="gray"
        aria-label={label}
        onClick={() => setColorScheme(dark ? 'light' : 'dark')}
      >
        {dark ? <IconSun size={17} stroke={1.7} /> : <IconMoon size={17} stroke={1.7} />}
      </ActionIcon>
    </Tooltip>
  );
}

/** Rising heat. */
function Mark() {
  return (
    <svg width="22" height="22" viewBox="0 0 22 22" aria-hidden className={classes.mark}>
      <rect x="1" y="1" width="20" height="20" rx="6" />
      <path d="M7 15.4c-2.2-2.9 2.2-5.9 0-8.8M11 15.4c-2.2-2.9 2.2-5.9 0-8.8M15 15.4c-2.2-2.9 2.2-5.9 0-8.8" />
    </svg>
  );
}
