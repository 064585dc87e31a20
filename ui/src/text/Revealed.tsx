import { parts, revealName } from './hidden';
import classes from './Revealed.module.css';

/** A text of somebody else, with its hidden characters as marked escapes. */
export function Revealed({ text }: { text: string }) {
  return parts(text).map((part, i) =>
    part.hidden ? (
      <span key={i} className={classes.hidden}>
        {part.text}
      </span>
    ) : (
      part.text
    ),
  );
}

/** The name of a file or a sandbox, on its own in the order of its letters. */
export function Name({ name }: { name: string }) {
  return <bdi>{revealName(name)}</bdi>;
}
