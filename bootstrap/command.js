/**
 * The commands that need no server, in a few files: each start would else find, read and link more than three hundred, which is most of
 * what a short `penstock run` takes. Kept beside the dependencies like what Node has compiled; the sources are what is true.
 *
 * COMMAND-1. `manifest.json` names the checkout, the platform and the Node that made them, and each source and the lockfile by size, time
 *     and inode. Where one of them differs, or this Node is older, the sources are run, and the next `npm start` or `npm test` makes the files anew.
 * COMMAND-2. They are never needed: what cannot be made is one line on the screen of that start.
 */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The checkout; real even where the command was called through npm's link to it. */
export const root = dirname(dirname(fileURLToPath(import.meta.url)));

const COMMANDS = ['run', 'validate', 'graph'];
/** Of a checkout that is shared between systems. */
export const PLATFORM = `${process.platform}-${process.arch}`;

const folderIn = (root) => join(root, 'node_modules', '.cache', 'penstock-command');

/** What differs where a file has changed. */
export function stateOf(file) {
  const { size, mtimeMs, ino } = statSync(file);
  return `${size} ${mtimeMs} ${ino}`;
}

/** The file to import for this command; undefined where the sources are to be run. COMMAND-1. */
export function madeCommand(root, name) {
  const isMade = COMMANDS.includes(name) && isOfThisNode(currentManifest(root));
  return isMade ? join(folderIn(root), 'main.js') : undefined;
}

function isOfThisNode(manifest) {
  return manifest !== undefined && Number.parseInt(process.versions.node, 10) >= manifest.nodeMajor;
}

/** `say` gets a line where they could not be made. */
export async function ensureCommand({ root, node, say }) {
  if (!existsSync(join(root, 'cli', 'src', 'commands.ts')) || isCurrent(root)) return;
  const { withLock } = await import('./lock.js');
  await withLock(join(root, '.cache', 'command.lock'), say, async () => {
    if (isCurrent(root)) return; // The start that held the lock before us did it.
    const { buildFolder } = await import('./build.js');
    const folder = folderIn(root);
    const fresh = `${folder}-${process.pid}`;
    const args = [join(root, 'bootstrap', 'command-build.js'), root, fresh, ...COMMANDS];
    const problem = await buildFolder({ node, args, cwd: root, folder, fresh });
    if (problem !== undefined)
      say(`'penstock run' starts a little slower, for its files could not be put together: ${problem}`);
  });
}

function isCurrent(root) {
  return currentManifest(root) !== undefined;
}

/** Undefined where there is none, or something has changed since. */
function currentManifest(root) {
  try {
    const manifest = JSON.parse(readFileSync(join(folderIn(root), 'manifest.json'), 'utf8'));
    if (manifest.root !== root || manifest.commands.join() !== COMMANDS.join()) return undefined;
    if (manifest.platform !== PLATFORM) return undefined;
    return manifest.files.every(([file, state]) => stateOf(`${root}/${file}`) === state) ? manifest : undefined;
  } catch {
    return undefined;
  }
}
