/**
 * Commands in a few files: each start would else find, read and link hundreds (a server 1,500 in two threads), which is most of what a
 * short `penstock run` takes and half of a server's start. Kept beside the dependencies like what Node has compiled; the sources are what is true.
 *
 * COMMAND-1. `manifest.json` names the checkout, the platform and the Node that made them, and each source, the lockfile and each made file
 *     by size, times and inode. Where one of them differs, or this Node is older, the sources are run, and the next `npm start` or `npm test` makes the files anew.
 * COMMAND-2. They are never needed: what cannot be made is one line on the screen of that start.
 * COMMAND-3. What runs keeps its files: they are made in another place, for a server loads some of them much later, and all for a thread
 *     that it starts again. `<place>.<pid>.<start time>` beside the places names who runs what is there; where it cannot be written, or who runs it is
 *     on another host, the last three places are left alone and no more.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { hasEnded, nameOf } from './process-name.js';

/** The checkout; real even where the command was called through npm's link to it. */
export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Each is made apart, for commands that share pieces with others load more than they need. */
export const SETS = {
  'penstock-command': { commands: ['run', 'validate', 'graph'], loses: "'penstock run' starts" },
  'penstock-server': { commands: ['serve', 'service', 'runner'], loses: 'servers start' },
};
/** As many as there are of what goes on while sources change. Named by a number, so that what Node has compiled of them is written over and does not pile up. */
const PLACES = 4;
export const NODE_MAJOR = Number.parseInt(process.versions.node, 10);
/** Of a checkout that is shared between systems. */
export const PLATFORM = `${process.platform}-${process.arch}`;

const folderIn = (root, set) => join(root, 'node_modules', '.cache', set);

/**
 * What differs where a file has changed. The time of its last change cannot be set: an archive gives a file the same time as the one
 * before had, and the system the same inode.
 */
export function stateOf(file) {
  const { size, mtimeMs, ctimeMs, ino } = statSync(file);
  return `${size} ${mtimeMs} ${ctimeMs} ${ino}`;
}

/** The file to run for this command; undefined where that is its sources. COMMAND-1. `nodeMajor`: of who is to run it. */
export function madeCommand(root, name, nodeMajor = NODE_MAJOR) {
  const set = Object.keys(SETS).find((each) => SETS[each].commands.includes(name));
  const manifest = set && currentManifest(root, set);
  if (manifest === undefined || nodeMajor < manifest.nodeMajor) return undefined;
  return join(folderIn(root, set), String(manifest.place), 'main.js');
}

const kept = new Set();

/** `file` as `madeCommand` found it, for who runs it in this process or in one that ends before this one: COMMAND-3. */
export function keptForNow(file) {
  const place = file && dirname(file);
  if (place === undefined || kept.has(place)) return file;
  kept.add(place);
  const { pid, started } = nameOf(process.pid);
  const mark = `${place}.${pid}.${started ?? ''}`;
  try {
    writeFileSync(mark, '');
    process.once('exit', () => rmSync(mark, { force: true }));
  } catch {
    // Kept by who may write there.
  }
  return file;
}

/** `say` gets a line where that takes a while, and where they could not be made. */
export async function ensureCommands({ root, node, say }) {
  if (!existsSync(join(root, 'cli', 'src', 'commands.ts')) || areCurrent(root)) return;
  const { withLock } = await import('./lock.js');
  await withLock(join(root, '.cache', 'command.lock'), say, async () => {
    // A start that held the lock before us may have made them.
    const outdated = Object.keys(SETS).filter((set) => currentManifest(root, set) === undefined);
    if (outdated.includes('penstock-server')) say('Putting the files of a server together (a few seconds).');
    await Promise.all(outdated.map((set) => make(root, node, set, say)));
  });
}

async function make(root, node, set, say) {
  const problem = await problemOfMaking(root, node, set).catch((error) => error.message);
  if (problem !== undefined)
    say(`${SETS[set].loses} a little slower, for the files could not be put together: ${problem}`);
}

/** Undefined: they are made. */
async function problemOfMaking(root, node, set) {
  const { buildFolder } = await import('./build.js');
  mkdirSync(folderIn(root, set), { recursive: true });
  removeOthers(folderIn(root, set));
  const place = freePlace(root, set);
  if (place === undefined) return `all ${PLACES} places for them are in use by what was started before`;
  const folder = join(folderIn(root, set), String(place));
  const fresh = join(folderIn(root, set), `${place}-${process.pid}`);
  const program = join(root, 'bootstrap', 'command-build.js');
  const args = ['--experimental-import-meta-resolve', program, root, fresh, set, String(place)];
  const problem = await buildFolder({ node, args, cwd: root, folder, fresh });
  if (problem === undefined) renameSync(join(folder, 'manifest.json'), manifestFile(root, set));
  return problem;
}

/** What a build that was killed has left, and marks of what runs no more. */
function removeOthers(folder) {
  for (const name of readdirSync(folder))
    if (name !== 'manifest.json' && !/^\d$/u.test(name) && !isMarkOfRunning(name))
      rmSync(join(folder, name), { recursive: true, force: true });
}

const MARK = /^(\d)\.(\d+)\.(\d*)$/u;

function isMarkOfRunning(name) {
  const [, , pid, started] = MARK.exec(name) ?? [];
  return pid !== undefined && !hasEnded({ pid: Number(pid), started: started || undefined });
}

/** The one after the last that nobody runs. */
function freePlace(root, set) {
  const used = new Set(readdirSync(folderIn(root, set)).map((name) => MARK.exec(name)?.[1]));
  const last = manifestOf(root, set)?.place ?? -1;
  const inTurn = Array.from({ length: PLACES }, (_, at) => (last + 1 + at) % PLACES);
  return inTurn.find((place) => !used.has(String(place)));
}

function areCurrent(root) {
  return Object.keys(SETS).every((set) => currentManifest(root, set) !== undefined);
}

const manifestFile = (root, set) => join(folderIn(root, set), 'manifest.json');

/** Undefined where there is none. */
function manifestOf(root, set) {
  try {
    return JSON.parse(readFileSync(manifestFile(root, set), 'utf8'));
  } catch {
    return undefined;
  }
}

/** Undefined also where something has changed since. */
function currentManifest(root, set) {
  try {
    const manifest = manifestOf(root, set);
    if (manifest.root !== root || manifest.commands.join() !== SETS[set].commands.join()) return undefined;
    if (manifest.platform !== PLATFORM || !(manifest.place < PLACES)) return undefined;
    const folder = join(folderIn(root, set), String(manifest.place));
    const isSame =
      (within) =>
      ([file, state]) =>
        stateOf(`${within}/${file}`) === state;
    return manifest.made.every(isSame(folder)) && manifest.files.every(isSame(root)) ? manifest : undefined;
  } catch {
    return undefined;
  }
}
