/** What the folder with a stage's files is called. */
import { createHash } from 'node:crypto';

/** What file systems take, in bytes: a stage of thirty characters that are no ASCII has more when it is coded. */
const NAME_MAX = 255;
const SHOWN_MAX = 200;

/** A stage's name may hold anything; coded like this it is one name of a folder, and no other stage's. */
export function stageFolder(stage: string): string {
  const name = encodeURIComponent(stage).replaceAll('.', '%2E');
  if (name.length <= NAME_MAX) return name;
  return `${name.slice(0, SHOWN_MAX)}~${createHash('sha256').update(stage).digest('hex').slice(0, 32)}`;
}
