import { IconFile, IconFileOff } from '@tabler/icons-react';
import type { Artifact } from '../api/types';
import { formatBytes } from '../format';
import classes from './Artifacts.module.css';
import { Name, Revealed } from '../text/Revealed';
import { revealName } from '../text/hidden';
import { downloadArtifact } from './download';

export function Artifacts({ artifacts }: { artifacts: Artifact[] }) {
  if (artifacts.length === 0) return null;
  return (
    <div className={classes.artifacts}>
      <h4 className={classes.title}>Files</h4>
      <ul className={classes.list}>
        {artifacts.map((artifact, i) => (
          <li key={i}>
            {artifact.omitted ? (
              <span className={classes.omitted}>
                <IconFileOff size={15} stroke={1.6} aria-hidden />
                <span className={classes.path}>
                  <Name name={artifact.path} />
                </span>
                <span className={classes.note}>
                  {formatBytes(artifact.size)}, left out: <Revealed text={artifact.omitted} />
                </span>
              </span>
            ) : (
              <button
                type="button"
                className={classes.file}
                onClick={() => downloadArtifact(artifact)}
                aria-label={`Download ${revealName(artifact.path)}, ${formatBytes(artifact.size)}`}
              >
                <IconFile size={15} stroke={1.6} aria-hidden />
                <span className={classes.path}>
                  <Name name={artifact.path} />
                </span>
                <span className={classes.note}>{formatBytes(artifact.size)}</span>
              </button>
            )}
          </li>
        ))}
      </ul>
    </div>
  );
}
