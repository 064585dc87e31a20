import { describeReplicas, type KnativeService } from '../api/services';
import classes from './ServiceList.module.css';

export function ServiceList({ services }: { services: KnativeService[] }) {
  return (
    <section className={classes.services} aria-label="Knative Services">
      <h2 className={classes.title}>Knative Services</h2>
      <ul className={classes.list}>
        {services.map((s) => (
          <Service key={s.name} service={s} />
        ))}
      </ul>
    </section>
  );
}

function Service({ service: s }: { service: KnativeService }) {
  return (
    <li data-testid={`service-${s.name}`}>
      <span className={classes.head}>
        <span className={classes.name}>{s.name}</span>
        <span className={classes.state} data-ready={s.ready}>
          {s.ready ? 'ready' : 'not ready'}
        </span>
        <span className={classes.replicas}>{describeReplicas(s.replicas)}</span>
      </span>
      {s.revision && <span className={classes.detail}>{s.revision}</span>}
      {s.url && <span className={classes.detail}>{s.url}</span>}
      {s.problem && <span className={classes.problem}>{s.problem}</span>}
    </li>
  );
}
