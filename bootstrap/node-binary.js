/**
 * Finds Node 26, which runs the TypeScript sources: this very process where it is new enough, else the binary in the platform
 * package of npm's `node` that the lockfile pins.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { BootstrapProblem } from './errors.js';

const PLATFORM = `${process.platform}-${process.arch}`;
const VERSION_MS_MAX = 30_000;

const runningIsEnough = (pins) => Number.parseInt(process.versions.node, 10) >= pins.nodeMajorMin;

/** The path of the binary, whether or not it is there; undefined where npm has no package for this platform. */
export function nodeBinary(root, pins) {
  if (runningIsEnough(pins)) return process.execPath;
  const name = pins.nodePackages[PLATFORM];
  return name && join(root, 'node_modules', name, 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
}

/** Says in one sentence why there will be no Node 26, before anything is installed in vain. */
export function assertPlatform(pins) {
  if (!runningIsEnough(pins) && !pins.nodePackages[PLATFORM]) {
    throw new BootstrapProblem(
      `npm has no Node ${pins.nodeMajorMin} for ${PLATFORM}: install Node ${pins.nodeMajorMin} or newer yourself and run the command with it.`,
    );
  }
}

/**
 * Starts the binary once, after an install: a file that is there and does not run is what a musl system looks like. Under
 * `npm run` this very process may be the one from node_modules (npm puts its .bin first), and so be gone after an install.
 */
export async function assertRuns(binary, pins) {
  const remedy = `install Node ${pins.nodeMajorMin} or newer yourself and run the command with it.`;
  if (!existsSync(binary)) {
    throw new BootstrapProblem(
      `npm left out the package ${pins.nodePackages[PLATFORM]} (it says nothing when an optional one cannot be fetched): check that npm's registry serves it (npm view ${pins.nodePackages[PLATFORM]}), or ${remedy}`,
    );
  }
  try {
    await promisify(execFile)(binary, ['--version'], { timeout: VERSION_MS_MAX });
  } catch (error) {
    const musl = process.platform === 'linux' && error.code === 'ENOENT';
    const why = musl ? 'it needs glibc, and this system has another C library (musl)' : (error.code ?? error.message);
    throw new BootstrapProblem(`npm's Node ${pins.nodeMajorMin} does not run here (${why}): ${remedy}`);
  }
}
