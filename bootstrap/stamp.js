/**
 * The word that the dependencies are in place, which every start looks at: so it loads nothing that is not Node's.
 *
 * STAMP-1. `node_modules/.penstock-stamp.json` names the lockfile by size and times and, where those differ, by SHA-256: a touched
 *     file costs a hash and no install. The time of its last change is one that nobody sets: of two lockfiles that an archive gives the
 *     same time and that differ in a version and a hash, size and time are the same. It also names the platform, for a checkout that is shared between systems.
 * STAMP-2. `node_modules/.penstock-node` is the path of the Node 26 that was seen to run: `penstock.sh` starts it at once.
 */
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { nodeBinary } from './node-binary.js';

const PLATFORM = `${process.platform}-${process.arch}`;

export const lockfile = (root) => join(root, 'package-lock.json');
const stampFile = (root) => join(root, 'node_modules', '.penstock-stamp.json');

export function isStamped(root, pins) {
  try {
    const stamp = JSON.parse(readFileSync(stampFile(root), 'utf8'));
    const binary = nodeBinary(root, pins);
    if (stamp.platform !== PLATFORM || !existsSync(binary)) return false;
    const { size, mtimeMs, ctimeMs } = statSync(lockfile(root));
    if (stamp.size === size && stamp.mtimeMs === mtimeMs && stamp.ctimeMs === ctimeMs) return true;
    if (stamp.sha256 !== digestOf(lockfile(root))) return false;
    writeStamp(root, binary);
    return true;
  } catch {
    return false;
  }
}

/** `binary`: the Node 26 that was seen to run. */
export function writeStamp(root, binary) {
  const { size, mtimeMs, ctimeMs } = statSync(lockfile(root));
  const stamp = { platform: PLATFORM, size, mtimeMs, ctimeMs, sha256: digestOf(lockfile(root)) };
  try {
    writeFileSync(join(root, 'node_modules', '.penstock-node'), `${binary}\n`);
    writeFileSync(stampFile(root), `${JSON.stringify(stamp)}\n`);
  } catch {
    // A tree that is complete and cannot be written is as good; it is only compared again next time.
  }
}

/** Hardly ever asked for: every start would take 6 ms longer if it were loaded with the rest. */
function digestOf(file) {
  const { createHash } = createRequire(import.meta.url)('node:crypto');
  return createHash('sha256').update(readFileSync(file)).digest('hex');
}
