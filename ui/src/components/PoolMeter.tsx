import { Popover, UnstyledButton } from '@mantine/core';
import type { KnativeService } from '../api/services';
import type { PoolStatus, SandboxState } from '../api/types';
import classes from './PoolMeter.module.css';
import { ServiceList } from './ServiceList';

/** More dots than this would be noise. */
const mostDots = 8;
const mostNames = 24;

interface Props {
  pools: PoolStatus[];
  services: KnativeService[];
}

export function PoolMeter({ pools, services }: Props) {
  const warm = pools.reduce((sum, p) => sum + p.warm, 0);
  const waiting = pools.reduce((sum, p) => sum + p.waiting, 0);
  const troubled = pools.some((p) => p.problem) || services.some((s) => !s.ready);
  return (
    <Popover position="bottom-end" shadow="md" width={320} trapFocus={false} returnFocus>
      <Popover.Target>
        <UnstyledButton
          className={classes.meter}
          aria-label={`Warm pools: ${warm} warm${waiting ? `, ${waiting} waiting` : ''}`}
          data-testid="pool-meter"
        >
          {pools.map((pool) => (
            <Dots key={pool.name} pool={pool} />
          ))}
          <span className={classes.count}>
            {warm} warm{waiting > 0 && `, ${waiting} waiting`}
            {troubled && ' !'}
          </span>
        </UnstyledButton>
      </Popover.Target>
      <Popover.Dropdown className={classes.dropdown}>
        {pools.map((pool) => (
          <PoolDetails key={pool.name} pool={pool} />
        ))}
        {services.length > 0 && <ServiceList services={services} />}
      </Popover.Dropdown>
    </Popover>
  );
}

const order: Record<SandboxState, number> = { warm: 0, claimed: 1, warming: 2 };

function Dots({ pool }: { pool: PoolStatus }) {
  const sandboxes = (pool.sandboxes ?? [])
    .toSorted((a, b) => order[a.state] - order[b.state])
    .slice(0, mostDots);
  return (
    <span className={classes.dots} aria-hidden>
      {sandboxes.map((s) => (
        <span key={s.name} className={classes.dot} data-state={s.state} />
      ))}
    </span>
  );
}

function PoolDetails({ pool }: { pool: PoolStatus }) {
  const sandboxes = pool.sandboxes ?? [];
  const more = Math.max(sandboxes.length - mostNames, 0) + (pool.sandboxes_omitted ?? 0);
  return (
    <section className={classes.pool} aria-label={`Pool ${pool.name}`}>
      <h2 className={classes.name}>
        {pool.name}
        <span className={classes.languages}>{(pool.languages ?? []).join(', ')}</span>
      </h2>
      <p className={classes.numbers}>
        {pool.warm} warm of {pool.desired} wanted, {pool.warming} warming, {pool.claimed} in use
        {pool.waiting > 0 && `, ${pool.waiting} waiting`}
      </p>
      {pool.problem && <p className={classes.problem}>{pool.problem}</p>}
      <ul className={classes.sandboxes}>
        {sandboxes.slice(0, mostNames).map((s) => (
          <li key={s.name}>
            <span className={classes.dot} data-state={s.state} aria-hidden />
            <span className={classes.sandboxName}>{s.name}</span>
            <span className={classes.state}>{s.state === 'claimed' ? 'in use' : s.state}</span>
          </li>
        ))}
      </ul>
      {more > 0 && <p className={classes.numbers}>and {more} more</p>}
    </section>
  );
}
