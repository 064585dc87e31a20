import type { Artifact } from '../api/types';

/** Saves an artifact under the last part of its path. */
export function downloadArtifact(artifact: Artifact): void {
  const content =
    artifact.encoding === 'base64'
      ? Uint8Array.from(atob(artifact.content), (c) => c.charCodeAt(0))
      : artifact.content;
  save(artifact.path.split('/').at(-1) ?? 'file', new Blob([content], { type: neutral }));
}

export function downloadText(name: string, text: string): void {
  save(name, new Blob([text], { type: 'text/plain;charset=utf-8' }));
}

/** A file of a program must never be opened as a page of this origin. */
const neutral = 'application/octet-stream';

function save(name: string, blob: Blob) {
  const url = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // The download has its own hold on the data once the click is handled.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
