/**
 * A small checkout of its own: the real bootstrap, a lockfile with the Node package in it, a home folder and a PATH with nothing
 * on it. The scripts run in child processes under the `node` of the PATH, as a user's do.
 */
import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';

const repository = join(import.meta.dirname, '../..');
const nodePackages = JSON.parse(readFileSync(join(repository, 'bootstrap/pins.json'), 'utf8')).nodePackages as Record<
  string,
  string
>;
export const platform = `${process.platform}-${process.arch}`;
const nodePackage = nodePackages[platform] ?? 'node';

/** The Node that users have, where it is not the newer one of our own node_modules (which npm puts first on the PATH). */
const userPath = (process.env['PATH'] ?? '')
  .split(delimiter)
  .filter((folder) => !folder.includes('node_modules'))
  .join(delimiter);
const userNode =
  spawnSync('node', ['-p', 'process.execPath'], {
    encoding: 'utf8',
    env: { ...process.env, PATH: userPath },
  }).stdout?.trim() || process.execPath;

export const userNodeMajor = Number.parseInt(
  spawnSync(userNode, ['-p', 'process.versions.node'], { encoding: 'utf8' }).stdout,
  10,
);

export type Outcome = {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
};

export class Checkout {
  readonly root = realpathSync(mkdtempSync(join(tmpdir(), 'penstock-bootstrap-')));
  readonly home = join(this.root, 'home');
  readonly bin = join(this.root, 'bin');
  readonly cache = join(this.home, '.cache', 'penstock');

  constructor() {
    cpSync(join(repository, 'bootstrap'), join(this.root, 'bootstrap'), { recursive: true });
    for (const folder of [this.home, this.bin]) mkdirSync(folder);
    this.write('package.json', JSON.stringify({ name: 'sandbox', type: 'module', workspaces: ['libs/*'] }));
    this.write('package-lock.json', this.lockfile('1.0.0'));
    this.write('npm/package.json', '{"type":"commonjs"}');
    this.write('npm/npm-cli.js', fakeNpm);
    this.install();
  }

  /** A lockfile that pins one ordinary package and this platform's Node. */
  lockfile(version: string): string {
    const packages = {
      '': {},
      'node_modules/dependency': { version },
      [`node_modules/${nodePackage}`]: { version: '26.0.0', optional: true, os: process.platform, cpu: process.arch },
    };
    return JSON.stringify({ lockfileVersion: 3, packages });
  }

  /** What `npm ci` would leave behind for the present lockfile. */
  install(): void {
    const lock = readFileSync(join(this.root, 'package-lock.json'), 'utf8');
    this.write('node_modules/.package-lock.json', lock);
    this.write('node_modules/dependency/package.json', '{}');
    mkdirSync(join(this.root, 'node_modules', nodePackage, 'bin'), { recursive: true });
    rmSync(this.nodeBinary, { force: true });
    symlinkSync(process.execPath, this.nodeBinary);
  }

  get nodeBinary(): string {
    return join(this.root, 'node_modules', nodePackage, 'bin/node');
  }

  write(path: string, content: string | Buffer): string {
    const file = join(this.root, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
    return file;
  }

  script(path: string, content: string | Buffer): string {
    const file = this.write(path, content);
    chmodSync(file, 0o755);
    return file;
  }

  read(path: string): string {
    return readFileSync(join(this.root, path), 'utf8');
  }

  /** Replaces the broker's pins; everything else in pins.json stays as it is. */
  pinBroker(change: (broker: { version: string; release: unknown; wheel: unknown }) => void): void {
    const pins = JSON.parse(this.read('bootstrap/pins.json'));
    change(pins.broker);
    this.write('bootstrap/pins.json', JSON.stringify(pins));
  }

  environment(changes: Record<string, string>): Record<string, string> {
    // Sources of the network are off unless a test turns them on, so that no test leaves the machine by accident.
    const off = { SERVICE_BROKER_RELEASE_URL: 'off', SERVICE_BROKER_INDEX_URL: 'off', PIP_CONFIG_FILE: '/dev/null' };
    return {
      PATH: this.bin,
      HOME: this.home,
      npm_execpath: join(this.root, 'npm/npm-cli.js'),
      SANDBOX_NODE: process.execPath,
      SANDBOX_NODE_LINK: this.nodeBinary,
      ...off,
      ...changes,
    };
  }

  launch(
    script: string,
    args: readonly string[] = [],
    changes: Record<string, string> = {},
    cwd = this.root,
  ): ChildProcess {
    return this.launchProgram(userNode, [join(this.root, script), ...args], changes, cwd);
  }

  launchProgram(
    program: string,
    args: readonly string[],
    changes: Record<string, string> = {},
    cwd = this.root,
  ): ChildProcess {
    return spawn(program, args, { cwd, env: this.environment(changes), stdio: ['ignore', 'pipe', 'pipe'] });
  }

  /** Puts the Node that users have on the PATH, and the programs that every machine has. */
  get pathWithNode(): string {
    rmSync(join(this.bin, 'node'), { force: true });
    symlinkSync(userNode, join(this.bin, 'node'));
    return [this.bin, '/usr/bin', '/bin'].join(delimiter);
  }

  run(
    script: string,
    args: readonly string[] = [],
    changes: Record<string, string> = {},
    cwd = this.root,
  ): Promise<Outcome> {
    return outcomeOf(this.launch(script, args, changes, cwd));
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}

export function outcomeOf(child: ChildProcess): Promise<Outcome> {
  const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
  let stdout = '';
  let stderr = '';
  child.stdout?.on('data', (chunk) => (stdout += chunk));
  child.stderr?.on('data', (chunk) => (stderr += chunk));
  child.once('error', reject);
  child.once('close', (code, signal) => resolve({ code, signal, stdout, stderr }));
  return promise;
}

/**
 * Stands for npm: writes down how it was called, empties node_modules and fills it from the lockfile. `SANDBOX_NPM` makes it
 * fail as npm fails, leave the optional package out, be killed together with its caller in the middle, or go on without it.
 */
const fakeNpm = `
const fs = require('node:fs');
const path = require('node:path');
fs.appendFileSync('npm-calls', process.argv.slice(2).join(' ') + '\\n');
fs.writeFileSync('npm-settings', Object.keys(process.env).filter((name) => /^npm_config_/i.test(name)).join());
const mode = process.env.SANDBOX_NPM;
if (mode === 'fail') {
  process.stderr.write('npm error code ECONNREFUSED\\nnpm error errno ECONNREFUSED\\nnpm error FetchError: request to the registry failed\\nnpm error A complete log of this run can be found in: x\\n');
  process.exit(1);
}
if (mode === 'told') {
  process.on('SIGTERM', () => {
    fs.writeFileSync('npm-ended', '');
    process.exit(1);
  });
  process.kill(process.ppid, 'SIGTERM');
  setTimeout(() => process.exit(1), 20_000);
  return;
}
fs.rmSync('node_modules', { recursive: true, force: true });
fs.mkdirSync('node_modules/dependency', { recursive: true });
if (mode === 'left') {
  process.kill(process.ppid, 'SIGKILL');
  while (fs.existsSync('npm-calls') && !fs.existsSync('go-on')) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);
}
if (mode === 'killed') {
  process.kill(process.ppid, 'SIGKILL');
  process.exit(1);
}
fs.writeFileSync('node_modules/.package-lock.json', fs.readFileSync('package-lock.json'));
if (mode !== 'without-node') {
  fs.mkdirSync(path.dirname(process.env.SANDBOX_NODE_LINK), { recursive: true });
  fs.symlinkSync(process.env.SANDBOX_NODE, process.env.SANDBOX_NODE_LINK);
}
`;
