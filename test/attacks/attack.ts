/** The programs of `programs.ts` as stages of one key, beside a running stage of another: what of them finds something. */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { networkInterfaces } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { expect, onTestFinished } from 'vitest';
import { temporaryFolder, trigger, TRIGGER } from '../support/server.ts';
import { readStream } from '../support/sse.ts';
import { until } from '../support/wait.ts';
import { PROGRAMS, type Program } from './programs.ts';
import { CANARY, CHECKOUT, type World } from './worlds.ts';

/** Undefined: the programs can be made and run here. */
export function whyNoAttacks(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'the tests do not run as root on Linux';
  try {
    execFileSync('gcc', ['--version'], { stdio: 'ignore' });
  } catch {
    return 'there is no gcc';
  }
  return process.arch === 'x64' || process.arch === 'arm64' ? undefined : 'the probe knows no such processor';
}

/** What a stage could change for everybody. */
const MACHINE_FILES = [
  ...['/etc/passwd', '/etc/crontab', '/etc/cron.d', '/var/spool/cron'],
  ...['/usr/bin', '/usr/local/bin', '/bin'],
];

/** `device:inode` of each, as `stat` tells them to stages too. */
function idsOf(paths: readonly string[]): string {
  const found = paths.map((path) => statSync(path, { throwIfNoEntry: false }));
  return found.flatMap((stat) => (stat === undefined ? [] : [`${stat.dev}:${stat.ino}`])).join(' ');
}
const FUNCTIONS = [
  'machines() { case " $MACHINE_FILES " in *" $(stat -Lc %d:%i "$1") "*) ;; *) return 1;; esac; }',
  // `test -w` is not everywhere a question to the kernel.
  'opens() { test -e "$1" && ( : >>"$1" ); }',
].join('\n');

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

const imageLine = (image: string | undefined): string => (image === undefined ? '' : `    image: ${image}\n`);
const indented = (script: string): string => script.replaceAll(/^/gm, '      ');

/** A stage of another key that runs until the test ends it; its workspace, and its run. */
async function startVictim({
  server,
  image,
  areApart,
}: World): Promise<{ readonly workspace: string; readonly run: string }> {
  const script = `umask 022; echo ${CANARY} > note; exec 7< note
for f in /tmp /var/tmp /dev/shm; do echo ${CANARY} > $f/penstock-attack-note || true; done
touch ready; echo ready; while [ ! -e stop ]; do sleep 0.1; done
rm -f /tmp/penstock-attack-note /var/tmp/penstock-attack-note /dev/shm/penstock-attack-note`;
  const run = await trigger(
    server,
    `pipeline: {name: victim}\nstages:\n  victim:\n${imageLine(image)}    env: {VICTIM_SECRET: ${CANARY}}\n    run: |\n${indented(script)}\n`,
  );
  const workspace = join(server.dataDir, 'work', '0', run, 'shared');
  if (areApart === true) {
    const ready = new AbortController();
    await readStream(`${server.url}/pipeline/${run}/logs`, server.apiKey, {
      signal: AbortSignal.any([ready.signal, AbortSignal.timeout(120_000)]),
      onEvent: ({ data }) => void (data['line'] === 'ready' && ready.abort()),
    });
    expect(ready.signal.aborted).toBe(true);
  } else {
    await until('the victim', () => (existsSync(join(workspace, 'ready')) ? true : undefined), 60_000);
    onTestFinished(() => writeFileSync(join(workspace, 'stop'), ''));
  }
  return { workspace, run };
}

interface AttackRun {
  readonly id: string;
  readonly status: string;
  readonly stages: readonly { readonly name: string; readonly status: string; readonly reason: string | null }[];
}

/** The names of the programs that have found something. */
export async function attack(world: World): Promise<string[]> {
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
    MACHINE_FILES: idsOf([...MACHINE_FILES, dirname(dirname(victim.workspace))]),
  };
  const line = imageLine(world.image);
  const groups = Array.from({ length: Math.ceil(PROGRAMS.length / GROUP) }, (_, at) =>
    PROGRAMS.slice(at * GROUP, (at + 1) * GROUP),
  );
  const prepare = `printf %s '${probe()}' | base64 -d | gzip -d > probe; chmod 755 probe; ./probe nothing`;
  const stages = groups.map(
    (group, at) =>
      `  group-${at}:\n    after: prepare\n    allow_failure: true\n    timeout: 120s\n${line}    run: |\n${indented(`${world.areApart === true ? `${prepare}\n` : ''}${scriptOf(group)}`)}\n`,
  );
  const yaml = `pipeline: {name: attacker}\nenv: ${JSON.stringify(env)}\nstages:\n  prepare:\n${line}    run: |\n${indented(prepare)}\n${stages.join('')}`;
  const answer = await server.graphql<{ triggerPipeline: { run: AttackRun } }>(TRIGGER, { yaml, waitSeconds: 300 });
  if (answer.errors !== undefined) throw new Error(JSON.stringify(answer.errors));
  const { id, status, stages: ran } = answer.data.triggerPipeline.run;
  const { events } = await readStream(`${server.url}/pipeline/${id}/logs`, server.apiKey);
  // What has not been tried has found nothing either.
  const notRun = ran.filter((stage) => stage.status !== 'SUCCESS');
  const told = events.filter(({ data }) => data['stream'] === 'system').map(({ data }) => data['line']);
  expect([status, notRun, ...(notRun.length > 0 ? told : [])]).toEqual(['SUCCESS', []]);
  const found = new Set<string>();
  const tried = new Map<unknown, string>();
  for (const { event, data } of events) {
    if (event !== 'stage_log') continue;
    const text = String(data['line']);
    if (text.startsWith(TRYING)) tried.set(data['stage'], text.slice(TRYING.length));
    else if (text === 'FOUND' || text.includes(CANARY)) found.add(tried.get(data['stage']) ?? 'prepare');
  }
  return [...found].toSorted();
}

/** A stage for each would be most of the time. */
const GROUP = 8;
const TRYING = 'trying ';

/** One after the other, each in a shell of its own. */
function scriptOf(programs: readonly Program[]): string {
  const tries = programs.map(({ name, script }) => `echo "${TRYING}${name}"\n( ${script}\n) 2>/dev/null || true`);
  return [FUNCTIONS, ...tries].join('\n');
}
