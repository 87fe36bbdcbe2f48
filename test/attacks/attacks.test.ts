/**
 * The programs of `programs.ts`, run by a real server as the stages of one key, beside a running stage of another. Where they
 * cannot run (no root to start servers of both kinds, no C compiler, no bubblewrap) that is reported.
 */
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { networkInterfaces } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startServer, temporaryFolder, trigger, TRIGGER, type RunningServer } from '../support/server.ts';
import { readStream } from '../support/sse.ts';
import { until } from '../support/wait.ts';
import { PROGRAMS, WAYS, type Way } from './programs.ts';

const CHECKOUT = fileURLToPath(new URL('../..', import.meta.url));
const CANARY = 'canary-7f3a9c';
/** Whom an ordinary server runs as, and its stages. */
const ORDINARY = 65_534;

function lacking(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'the tests do not run as root on Linux';
  try {
    execFileSync('gcc', ['--version'], { stdio: 'ignore' });
  } catch {
    return 'there is no gcc';
  }
  return process.arch === 'x64' || process.arch === 'arm64' ? undefined : 'the probe knows no such processor';
}

const why = lacking();
const hasSandbox = (process.env['PATH'] ?? '').split(':').some((folder) => existsSync(join(folder, 'bwrap')));
const notRun = process.env['PENSTOCK_NOT_RUN_FILE'];
const report = (what: string, reason: string): void => {
  if (notRun !== undefined) appendFileSync(notRun, `${what}: ${reason}\n`);
};
if (why !== undefined) report('attacks of stages', why);
else if (!hasSandbox) report('attacks of stages in a sandbox', 'there is no bubblewrap');

function probe(): string {
  const folder = temporaryFolder('penstock-probe-');
  onTestFinished(() => folder.remove());
  const file = join(folder.path, 'probe');
  const source = join(dirname(fileURLToPath(import.meta.url)), 'probe.c');
  const flags = ['-Os', '-s', '-static', '-nostdlib', '-ffreestanding', '-fno-stack-protector'];
  execFileSync('gcc', [...flags, '-fno-asynchronous-unwind-tables', '-o', file, source]);
  return gzipSync(readFileSync(file)).toString('base64');
}

async function listen(host: string | undefined, path?: string): Promise<Server> {
  const server = createServer((socket) => socket.end());
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(path === undefined ? { host, port: 0 } : { path }, resolve);
  });
  onTestFinished(() => new Promise<void>((done) => server.close(() => done())));
  return server;
}

const portOf = (server: Server): string => String((server.address() as AddressInfo).port);

/** The broker says on which port it listens in the configuration that the server has made for it. */
function brokerPort(dataDir: string): string {
  for (const entry of readdirSync(dataDir, { recursive: true, encoding: 'utf8' })) {
    if (!entry.endsWith('.conf')) continue;
    const port = /(?:port|listen)[^\d\n]*(?:127\.0\.0\.1:)?(\d{2,5})/.exec(
      readFileSync(join(dataDir, entry), 'utf8'),
    )?.[1];
    if (port !== undefined) return port;
  }
  return '1';
}

const indented = (script: string): string => script.replaceAll(/^/gm, '      ');

interface World {
  readonly server: RunningServer;
  readonly secret: string;
}

async function start(way: Way): Promise<World> {
  const folder = temporaryFolder('penstock-attack-');
  const user = way.endsWith('root') ? undefined : ORDINARY;
  const dataDir = join(folder.path, 'data');
  const secret = join(folder.path, 'secret');
  mkdirSync(dataDir, { mode: 0o700 });
  writeFileSync(secret, CANARY, { mode: 0o600 });
  chmodSync(folder.path, user === undefined ? 0o700 : 0o711);
  const env: Record<string, string> = {
    SERVICE_EXECUTORS: way.startsWith('sandbox') ? 'sandbox' : 'process',
    SERVICE_STAGE_UIDS: '300000-300099',
    SERVICE_SLOTS: '4',
  };
  if (user !== undefined) {
    for (const path of [dataDir, secret]) chownSync(path, user, user);
    const broker = join(folder.path, 'nats-server');
    const given = process.env['SERVICE_NATS_SERVER'];
    if (given !== undefined) {
      // It lies where another user cannot look.
      copyFileSync(given, broker);
      chmodSync(broker, 0o755);
      env['SERVICE_NATS_SERVER'] = broker;
    }
    env['HOME'] = folder.path;
  }
  const server = await startServer({ dataDir, env, user });
  onTestFinished(async () => {
    await server.stop();
    folder.remove();
  });
  return { server, secret };
}

/** A stage of another key that runs until the test ends it; its workspace, and its run. */
async function startVictim({ server }: World): Promise<{ readonly workspace: string; readonly run: string }> {
  const script = `umask 022; echo ${CANARY} > note; exec 7< note
for f in /tmp /var/tmp /dev/shm; do echo ${CANARY} > $f/penstock-attack-note || true; done
touch ready; while [ ! -e stop ]; do sleep 0.1; done
rm -f /tmp/penstock-attack-note /var/tmp/penstock-attack-note /dev/shm/penstock-attack-note`;
  const run = await trigger(
    server,
    `pipeline: {name: victim}\nstages:\n  victim:\n    env: {VICTIM_SECRET: ${CANARY}}\n    run: |\n${indented(script)}\n`,
  );
  const workspace = join(server.dataDir, 'work', '0', run, 'shared');
  await until('the victim', () => (existsSync(join(workspace, 'ready')) ? true : undefined));
  onTestFinished(() => writeFileSync(join(workspace, 'stop'), ''));
  return { workspace, run };
}

/** The names of the programs that have found something. */
async function attack(world: World): Promise<string[]> {
  const { server } = world;
  const victim = await startVictim(world);
  const [own4] = Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    .filter((each) => !each.internal && each.family === 'IPv4');
  const socket = `penstock-attack-${process.pid}`;
  await listen(undefined, `\0${socket}`);
  const env = {
    VICTIM: victim.workspace,
    VICTIM_RUN: victim.run,
    DATA: server.dataDir,
    CHECKOUT,
    SECRET: world.secret,
    SERVER_PID: String(server.pid),
    API: new URL(server.url).port,
    BROKER: brokerPort(server.dataDir),
    OTHER: portOf(await listen('0.0.0.0')),
    OTHER6: portOf(await listen('::1').catch(() => listen('127.0.0.1'))),
    ADDRESS: own4?.address ?? '127.0.0.2',
    SOCKET: socket,
  };
  const stages = PROGRAMS.map(
    ({ name, script }) =>
      `  ${name}:\n    after: prepare\n    allow_failure: true\n    timeout: 30s\n    run: |\n${indented(`{ ${script}\n} 2>/dev/null`)}\n`,
  );
  const prepare = `printf %s '${probe()}' | base64 -d | gzip -d > probe; chmod 755 probe; ./probe nothing`;
  const yaml = `pipeline: {name: attacker}\nenv: ${JSON.stringify(env)}\nstages:\n  prepare:\n    run: |\n${indented(prepare)}\n${stages.join('')}`;
  const answer = await server.graphql<{ triggerPipeline: { run: { id: string; status: string } } }>(TRIGGER, {
    yaml,
    waitSeconds: 240,
  });
  if (answer.errors !== undefined) throw new Error(JSON.stringify(answer.errors));
  const { id, status } = answer.data.triggerPipeline.run;
  const { events } = await readStream(`${server.url}/pipeline/${id}/logs`, server.apiKey);
  expect([
    status,
    events.find(({ event, data }) => event === 'stage_completed' && data['stage'] === 'prepare')?.data['status'],
  ]).toEqual(['SUCCESS', 'Success']);
  const found = events.filter(
    ({ event, data: { line } }) => event === 'stage_log' && (line === 'FOUND' || String(line).includes(CANARY)),
  );
  return [...new Set(found.map(({ data: { stage } }) => String(stage)))].toSorted();
}

describe.runIf(why === undefined)('programs that a stage may try', () => {
  it('are at least sixty, each by a name of its own', () => {
    expect(PROGRAMS.length).toBeGreaterThanOrEqual(60);
    expect(new Set(PROGRAMS.map(({ name }) => name)).size).toBe(PROGRAMS.length);
  });

  it.each(WAYS.filter((way) => hasSandbox || way.startsWith('process')))(
    '%s: they find nothing but what is told to be not held',
    async (way) => {
      const known = PROGRAMS.filter(({ notHeld }) => notHeld?.includes(way)).map(({ name }) => name);
      const found = await attack(await start(way));
      expect(found.filter((name) => !known.includes(name))).toEqual([]);
    },
    300_000,
  );
});
