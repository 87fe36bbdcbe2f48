/**
 * Builds the dashboard where its sources have changed: `services/dashboard/app` into `services/dashboard/dist`, which git ignores.
 *
 * DASHBOARD-1. `dist/.stamp` is the SHA-256 of all sources, of what builds them and of the lockfile; it is written into the new folder
 *     before that takes the place of the old one, so that a killed build leaves the old dashboard, or none, and never half of one.
 * DASHBOARD-2. A server without its dashboard is still a server: a build that fails is a line on the screen, and the address says so too.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildFolder } from './build.js';
import { withLock } from './lock.js';
import { hasEnded } from './process-name.js';

/** Resolves to whether the dashboard is there; `say` gets a line where it had to be built, or could not be. */
export async function ensureDashboard({ root, node, say }) {
  const folder = join(root, 'services', 'dashboard');
  if (!existsSync(join(folder, 'app'))) return false;
  if (isBuilt(root, folder)) return true;
  return await withLock(join(root, '.cache', 'dashboard.lock'), say, async () => {
    if (isBuilt(root, folder)) return true; // The start that held the lock before us did it.
    say('Building the dashboard (a few seconds).');
    removeLeft(folder);
    const problem = await build(root, folder, node);
    if (problem === undefined) return true;
    say(`the dashboard could not be built, and everything else works without it: ${problem}`);
    return false;
  });
}

/** What the dashboard is made from, as one hash. */
function sourcesHash(root, folder) {
  const hash = createHash('sha256');
  const files = readdirSync(join(folder, 'app'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .toSorted();
  for (const file of [...files, ...['vite.config.js', 'package.json'].map((name) => join(folder, name))]) {
    const content = readFileSync(file);
    hash.update(`${file.slice(folder.length)}\0${content.length}\0`).update(content);
  }
  return hash.update(readFileSync(join(root, 'package-lock.json'))).digest('hex');
}

function isBuilt(root, folder) {
  try {
    return readFileSync(join(folder, 'dist', '.stamp'), 'utf8') === sourcesHash(root, folder);
  } catch {
    return false;
  }
}

/** What builds that were killed have left; one whose process lives may go on, where no lock can be written. */
function removeLeft(folder) {
  for (const name of readdirSync(folder)) {
    const pid = /^\.dist-(\d+)$/u.exec(name)?.[1];
    if (pid === undefined || !hasEnded({ pid: Number(pid) })) continue;
    try {
      rmSync(join(folder, name), { recursive: true, force: true });
    } catch {
      // Another user's: it is in nobody's way.
    }
  }
}

/** @returns what went wrong, or undefined. */
async function build(root, folder, node) {
  const fresh = join(folder, `.dist-${process.pid}`);
  try {
    // Before the build, so that a source that changes meanwhile is built again next time.
    const stamp = sourcesHash(root, folder);
    const vite = join(root, 'node_modules', 'vite', 'bin', 'vite.js');
    const config = join(folder, 'vite.config.js');
    return await buildFolder({
      node,
      args: [vite, 'build', '--config', config, '--outDir', fresh, '--logLevel', 'error'],
      cwd: folder,
      folder: join(folder, 'dist'),
      fresh,
      finish: () => writeFileSync(join(fresh, '.stamp'), stamp),
    });
  } catch (error) {
    return error.message;
  }
}
