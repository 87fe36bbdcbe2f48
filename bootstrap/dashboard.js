/**
 * Builds the dashboard where its sources have changed: `services/dashboard/app` into `services/dashboard/dist`, which git ignores.
 *
 * DASHBOARD-1. `dist/.stamp` is the SHA-256 of all sources, of what builds them and of the lockfile; it is written into the new folder
 *     before that takes the place of the old one, so that a killed build leaves the old dashboard, or none, and never half of one.
 * DASHBOARD-2. A server without its dashboard is still a server: a build that fails is a line on the screen, and the address says so too.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { withLock } from './lock.js';

const OUTPUT_CHARS_MAX = 16 * 1024;
/** A build takes a few seconds; on a machine that is busy with much else a minute was seen. */
const BUILD_MS_MAX = 10 * 60_000;

/** Resolves to whether the dashboard is there; `say` gets a line where it had to be built, or could not be. */
export async function ensureDashboard({ root, node, say }) {
  const folder = join(root, 'services', 'dashboard');
  if (!existsSync(join(folder, 'app'))) return false;
  if (isBuilt(root, folder)) return true;
  return await withLock(join(root, '.cache', 'dashboard.lock'), say, async () => {
    if (isBuilt(root, folder)) return true; // The start that held the lock before us did it.
    say('Building the dashboard (a few seconds).');
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

/** @returns what went wrong, or undefined. */
async function build(root, folder, node) {
  const fresh = join(folder, `.dist-${process.pid}`);
  try {
    // Before the build, so that a source that changes meanwhile is built again next time.
    const stamp = sourcesHash(root, folder);
    mkdirSync(fresh, { recursive: true });
    const args = ['build', '--config', join(folder, 'vite.config.js'), '--outDir', fresh, '--logLevel', 'error'];
    const { code, output } = await run(node, [join(root, 'node_modules', 'vite', 'bin', 'vite.js'), ...args], folder);
    if (code !== 0) return `${output.trim().split('\n').slice(0, 20).join('\n') || `vite ended with ${code}`}`;
    writeFileSync(join(fresh, '.stamp'), stamp);
    rmSync(join(folder, 'dist'), { recursive: true, force: true });
    renameSync(fresh, join(folder, 'dist'));
    return undefined;
  } catch (error) {
    return error.message;
  } finally {
    try {
      rmSync(fresh, { recursive: true, force: true });
    } catch {
      // A checkout that cannot be written; what went wrong first has been told.
    }
  }
}

function run(node, args, cwd) {
  return new Promise((resolve, reject) => {
    const child = spawn(node, args, {
      cwd,
      env: { ...process.env, NODE_ENV: 'production' },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: BUILD_MS_MAX,
    });
    let output = '';
    const keep = (chunk) => {
      if (output.length < OUTPUT_CHARS_MAX) output += chunk;
    };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    child.once('error', reject);
    child.once('close', (code, signal) => resolve({ code: code ?? signal, output }));
  });
}
