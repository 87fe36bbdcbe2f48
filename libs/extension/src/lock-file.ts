/** `.pipeline.lock`: what each `uses` of a pipeline file was resolved to, to be kept beside it. JSON of one line for each. */
import { PIPELINE_LIMITS, parseUses } from '@penstock/pipeline';
import { BadLock } from './errors.ts';
import type { LockEntry } from './registry-messages.ts';

export const LOCK_NAME = '.pipeline.lock';
const LOCK_VERSION = 1;

/** Sorted by `uses`, so that the same lock is the same text. */
export function formatLock(entries: readonly LockEntry[]): string {
  const lines = entries
    .toSorted((left, right) => (left.uses < right.uses ? -1 : left.uses > right.uses ? 1 : 0))
    .map(({ uses, id, version, hash }) => `    ${JSON.stringify({ uses, id, version, hash })}`);
  return `{\n  "lockVersion": ${LOCK_VERSION},\n  "extensions": [${lines.length === 0 ? '' : `\n${lines.join(',\n')}\n  `}]\n}\n`;
}

/** Throws BadLock. */
export function parseLock(text: string): LockEntry[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new BadLock('it is not JSON', { cause: error });
  }
  if (typeof value !== 'object' || value === null || !('extensions' in value) || !Array.isArray(value.extensions))
    throw new BadLock("it has no list 'extensions'");
  if (!('lockVersion' in value) || value.lockVersion !== LOCK_VERSION)
    throw new BadLock(`its 'lockVersion' is not ${LOCK_VERSION}: it was written by another version of Penstock`);
  if (value.extensions.length > PIPELINE_LIMITS.extensionsMax)
    throw new BadLock(`it has more than ${PIPELINE_LIMITS.extensionsMax} extensions`);
  return value.extensions.map(entryOf);
}

function entryOf(value: unknown): LockEntry {
  const field = (name: string): string => {
    const found: unknown =
      typeof value === 'object' && value !== null && Object.hasOwn(value, name)
        ? (value as Record<string, unknown>)[name]
        : undefined;
    if (typeof found !== 'string') throw new BadLock(`an extension in it has no '${name}'`);
    return found;
  };
  const entry = { uses: field('uses'), id: field('id'), version: field('version'), hash: field('hash') };
  if (!('id' in parseUses(entry.uses)) || !/^[0-9a-f]{64}$/.test(entry.hash))
    throw new BadLock('an extension in it is not as penstock lock writes it');
  return entry;
}
