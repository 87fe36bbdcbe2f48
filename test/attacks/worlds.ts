/**
 * The servers that the programs of `programs.ts` attack: one for each way in which stages can run, started by root or by another
 * user. What such a user lacks here, and has on the machines of distributions, is made for its process alone, in a mount
 * namespace: a device for tunnels that everybody may open, and numbers for the users of its containers.
 */
import { execFile, execFileSync } from 'node:child_process';
import { chmodSync, chownSync, copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { engineForTests, IMAGE } from '@penstock/executor/testing-containers';
import { onTestFinished } from 'vitest';
import { startServer, temporaryFolder, type RunningServer } from '../support/server.ts';
import type { Way } from './programs.ts';

export const CHECKOUT = fileURLToPath(new URL('../..', import.meta.url));
export const CANARY = 'canary-7f3a9c';
/** Whom an ordinary server runs as, and its stages. */
const ORDINARY = 65_534;
/** Of its containers' users; nobody's else. */
const ORDINARY_IDS = { first: 700_000, count: 65_536 };
const STAGE_UIDS = '300000-300099';
const PROBE_MS_MAX = 120_000;

export interface World {
  readonly server: RunningServer;
  /** A file of the server's user. */
  readonly secret: string;
  /** Of its stages, where they run in one. */
  readonly image: string | undefined;
  /** Each stage has a copy of its run's workspace, and no other sees what it writes there. */
  readonly areApart?: boolean;
}

const ORDINARY_MACHINE = `set -e
device=$(mktemp -u /var/tmp/penstock-tun-XXXXXX); mknod -m 666 "$device" c 10 200
mount --bind "$device" /dev/net/tun; rm -f "$device"
ids=$(mktemp /var/tmp/penstock-ids-XXXXXX); echo "$1:$2:$3" >"$ids"; chmod 644 "$ids"
for file in /etc/subuid /etc/subgid; do [ ! -e "$file" ] || mount --bind "$ids" "$file"; done; rm -f "$ids"
shift 3; exec "$@"`;

/** Begins commands of the ordinary user. */
const AS_ORDINARY = [
  ...['unshare', '--mount', 'sh', '-c', ORDINARY_MACHINE, 'machine'],
  ...[ORDINARY, ORDINARY_IDS.first, ORDINARY_IDS.count].map(String),
  ...['setpriv', `--reuid=${ORDINARY}`, `--regid=${ORDINARY}`, '--clear-groups', '--'],
];

const partsOf = (way: Way): { readonly executor: string; readonly isRoot: boolean } => {
  const [executor = '', user] = way.split(', ');
  return { executor, isRoot: user === 'root' };
};

/** Null: stages can run in this way here. */
export async function whyNot(way: Way): Promise<string | null> {
  const { executor, isRoot } = partsOf(way);
  // What an engine gives an ordinary user's containers as their network.
  if (executor === 'container' && !isRoot && !isOnPath('slirp4netns')) return 'there is no slirp4netns';
  const folder = temporaryFolder('penstock-attack-probe-');
  chmodSync(folder.path, 0o711);
  try {
    const as = isRoot ? [] : AS_ORDINARY;
    const [file = '', ...args] = [...as, process.execPath, '-e', WHY_NOT[executor] ?? ''];
    const env = { ...process.env, ...homeOf(folder.path, isRoot) };
    const { stdout } = await promisify(execFile)(file, args, { cwd: CHECKOUT, env, timeout: PROBE_MS_MAX });
    return JSON.parse(stdout) as string | null;
  } catch (error) {
    const { stderr = '', message } = error as Error & { stderr?: string };
    return stderr.trim().split('\n')[0] || message;
  } finally {
    endEngineOf(folder.path);
    folder.remove();
  }
}

function isOnPath(program: string): boolean {
  return (process.env['PATH'] ?? '').split(':').some((folder) => existsSync(join(folder, program)));
}

/** Each says by one line of JSON what lacks, for whoever it is run as. */
const WHY_NOT: Readonly<Record<string, string>> = {
  process:
    'import("@penstock/executor").then(async (it) => { const e = new it.ProcessExecutor({ warn: () => {} }); await e.prewarm(1); console.log(JSON.stringify(e.isIsolated ? null : "there are no namespaces")); await e.close() })',
  sandbox:
    'import("@penstock/executor").then(async (it) => console.log(JSON.stringify(await it.whySandboxLacks(undefined))))',
  container:
    'import("@penstock/executor").then(async (it) => { const { engine, why } = await it.findEngine(); console.log(JSON.stringify(engine === null ? why : null)) })',
};

export async function startWorld(way: Way): Promise<World> {
  const { executor, isRoot } = partsOf(way);
  const folder = temporaryFolder('penstock-attack-');
  const user = isRoot ? 0 : ORDINARY;
  const dataDir = join(folder.path, 'data');
  const secret = join(folder.path, 'secret');
  mkdirSync(dataDir, { mode: 0o700 });
  writeFileSync(secret, CANARY, { mode: 0o600 });
  chmodSync(folder.path, isRoot ? 0o700 : 0o711);
  for (const path of [dataDir, secret]) chownSync(path, user, user);
  const env: Record<string, string> = {
    SERVICE_EXECUTORS: executor,
    SERVICE_STAGE_UIDS: STAGE_UIDS,
    SERVICE_SLOTS: '4',
    ...homeOf(folder.path, isRoot),
  };
  const given = process.env['SERVICE_NATS_SERVER'];
  if (given !== undefined && !isRoot) {
    // It lies where another user cannot look.
    const broker = join(folder.path, 'nats-server');
    copyFileSync(given, broker);
    chmodSync(broker, 0o755);
    env['SERVICE_NATS_SERVER'] = broker;
  }
  const image = executor === 'container' ? IMAGE : undefined;
  const through = isRoot ? [] : [...AS_ORDINARY];
  if (image !== undefined) {
    const found = await engineForTests(`attacks as ${way}`);
    if (found === null) throw new Error('the engine is gone');
    if (!isRoot) {
      // An image of root's is not this user's: it takes it along, in the namespace in which it is to be used.
      const archive = join(folder.path, 'image.tar');
      const [file = '', ...flags] = found.kind === 'podman' ? found.command : ['docker'];
      execFileSync(file, [...flags, 'save', '--output', archive, image], { stdio: 'ignore' });
      chmodSync(archive, 0o644);
      through.push('sh', '-c', 'podman load --quiet --input "$0" >/dev/null && exec "$@"', archive);
    }
  }
  const server = await startServer({ dataDir, env, through });
  onTestFinished(async () => {
    await server.stop();
    endEngineOf(folder.path);
    folder.remove();
  });
  return { server, secret, image };
}

/** Engines keep an ordinary user's images in its home, and what runs in its folder for that. */
function homeOf(folder: string, isRoot: boolean): Record<string, string> {
  if (isRoot) return {};
  const [home, runtime] = [join(folder, 'home'), join(folder, 'runtime')];
  for (const path of [home, runtime]) {
    mkdirSync(path, { mode: 0o700 });
    chownSync(path, ORDINARY, ORDINARY);
  }
  return { HOME: home, XDG_RUNTIME_DIR: runtime, TMPDIR: home };
}

/** What podman keeps running for a user holds its namespaces until it is told to go. */
function endEngineOf(folder: string): void {
  let pid: number;
  try {
    pid = Number(readFileSync(join(folder, 'runtime', 'libpod', 'tmp', 'pause.pid'), 'utf8'));
  } catch {
    return;
  }
  try {
    if (pid > 1) process.kill(pid, 'SIGKILL');
  } catch {
    // It has gone by itself.
  }
}
