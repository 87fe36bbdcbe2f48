/**
 * `npm run chaos:k8s -- --lab <folder> [--seeds 20] [--seed N] [--image busybox] [--faults a,b]`: runs of a server whose stages are Pods of a lab, while
 * its API server, kubelet, containerd, node and the server itself are killed, stopped and drained. Each stage tells a counter outside of the
 * cluster that it lives. A seed is sound when every run has succeeded, no stage ran twice at a time, no line of a log is missing or comes
 * twice, and no Pod is left. Ends with 1 at the first that is not.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { pause } from '@penstock/async';
import { Random } from '../support/random.ts';
import { startServer, temporaryFolder, trigger, type RunningServer } from '../support/server.ts';
import { readStream } from '../support/sse.ts';
import { doTo, kubectl, LAB_FAULTS, mend, type LabFault, type LabPlace } from './lab-faults.ts';

const text = { type: 'string' } as const;
const { values } = parseArgs({
  options: {
    lab: text,
    seeds: { ...text, default: '20' },
    seed: { ...text, default: '1' },
    image: { ...text, default: 'busybox' },
    faults: text,
    runs: { ...text, default: '5' },
  },
});
const say = (line: string): boolean => process.stdout.write(`${line}\n`);

const NAMESPACE = 'penstock-chaos';
const LINES = 25;
const RUN_MS_MAX = 6 * 60_000;
const FAULTS = [...LAB_FAULTS, 'runner-killed'] as const;

interface Beat {
  readonly attempt: number;
  readonly line: number;
}

/** What the stages say while they live, by run and stage, in the order in which it came. */
const beats = new Map<string, Beat[]>();
const counter = createServer((request, response) => {
  const { searchParams } = new URL(request.url ?? '/', 'http://counter');
  const of = `${searchParams.get('run')} ${searchParams.get('stage')}`;
  const all = beats.get(of) ?? [];
  all.push({ attempt: Number(searchParams.get('attempt')), line: Number(searchParams.get('line')) });
  beats.set(of, all);
  response.end('ok');
});

if (values.lab === undefined) throw new Error('--lab names the folder of the lab');
const address = Object.values(networkInterfaces())
  .flat()
  .find(
    (each) => each !== undefined && each.family === 'IPv4' && !each.internal && !each.address.startsWith('10.244.'),
  )?.address;
if (address === undefined) throw new Error('this machine has no address that a Pod could reach');
const lab: LabPlace = {
  folder: values.lab,
  run: join(values.lab, 'run'),
  env: { KWOK: '0', BIND: '0.0.0.0', ADVERTISE: address, REGISTRY: '1' },
};
counter.listen(0, '0.0.0.0');
await once(counter, 'listening');
const pipeline = pipelineOf(`${address}:${(counter.address() as AddressInfo).port}`, values.image);
const manifest = readFileSync(new URL('../../deploy/k8s/executor.yaml', import.meta.url), 'utf8');
await kubectl(lab, ['apply', '-f', '-'], manifest.replaceAll('penstock-stages', NAMESPACE));
const kubeconfig = await kubeconfigOfAccount();
const kinds = values.faults === undefined ? FAULTS : FAULTS.filter((kind) => values.faults?.split(',').includes(kind));

let unsound = 0;
for (let seed = Number(values.seed); seed < Number(values.seed) + Number(values.seeds) && unsound === 0; seed += 1) {
  const begun = Date.now();
  const violations = await oneSeed(seed);
  for (const violation of violations) say(`  ${violation}`);
  unsound += violations.length;
  say(`seed ${seed}: ${violations.length === 0 ? 'sound' : 'NOT SOUND'}, ${Math.round((Date.now() - begun) / 1000)} s`);
}
counter.close();
counter.closeAllConnections();
await kubectl(lab, ['delete', 'namespace', NAMESPACE, '--wait=false']);
process.exitCode = unsound === 0 ? 0 : 1;

async function oneSeed(seed: number): Promise<string[]> {
  const random = new Random(seed);
  const folder = temporaryFolder('penstock-chaos-k8s-');
  const start = (): Promise<RunningServer> =>
    startServer({
      dataDir: folder.path,
      env: {
        SERVICE_EXECUTORS: 'kubernetes',
        SERVICE_K8S_NAMESPACE: NAMESPACE,
        SERVICE_K8S_KUBECONFIG: kubeconfig,
        SERVICE_RUNNER_LEASE_SECS: '30',
        SERVICE_SLOTS: '6',
      },
    });
  let server = await start();
  const did: string[] = [];
  try {
    const runs: string[] = [];
    for (let count = 0; count < Number(values.runs); count += 1) runs.push(await trigger(server, pipeline));
    for (let faults = 2 + random.int(2); faults > 0; faults -= 1) {
      await pause(1_500 + random.int(5_000));
      const kind = kinds[random.int(kinds.length)] ?? 'api-killed';
      did.push(kind);
      if (kind === 'runner-killed') server = await killed(server, start);
      else await doTo(lab, kind satisfies LabFault, NAMESPACE, random);
    }
    const violations: string[] = [];
    const attempts: number[] = [];
    for (const run of runs) {
      const ended = await untilEnded(server, run);
      if (ended !== 'SUCCESS') violations.push(`run ${run} is ${ended}`);
      else violations.push(...(await faultsOfLog(server, run)));
    }
    for (const [of, all] of beats) {
      violations.push(...overlaps(of, all));
      attempts.push(Math.max(...all.map(({ attempt }) => attempt)));
    }
    const left = await podsLeft();
    if (left.length > 0) violations.push(`Pods are left: ${left.join(', ')}`);
    const again = attempts.reduce((sum, attempt) => sum + attempt - 1, 0);
    say(`  ${did.join(', ')}: ${runs.length} runs, ${attempts.length} stages, ${again} attempts more`);
    if (violations.length > 0) {
      const file = join(folder.path, '..', `penstock-chaos-k8s-${seed}.log`);
      writeFileSync(file, server.output());
      violations.push(`what the server said: ${file}`);
    }
    return violations;
  } finally {
    await server.stop();
    await mend(lab);
    beats.clear();
    folder.remove();
  }
}

async function killed(server: RunningServer, start: () => Promise<RunningServer>): Promise<RunningServer> {
  server.child.kill('SIGKILL');
  await once(server.child, 'exit');
  return start();
}

async function untilEnded(server: RunningServer, id: string): Promise<string> {
  const query = 'query ($id: String!) { run(id: $id) { status stages { name status reason } } }';
  const deadline = Date.now() + RUN_MS_MAX;
  for (;;) {
    const { data } = await server.graphql<{ run: { status: string; stages: unknown } | null }>(query, { id });
    const status = data.run?.status ?? 'not there';
    if (!['PENDING', 'QUEUED', 'RUNNING'].includes(status))
      return status === 'SUCCESS' ? status : `${status} ${JSON.stringify(data.run?.stages)}`;
    if (Date.now() > deadline) return `${status} for too long: ${JSON.stringify(data.run?.stages)}`;
    await pause(500);
  }
}

/** Of the attempt of each stage that has succeeded, its lines are there once each and in their order. */
async function faultsOfLog(server: RunningServer, id: string): Promise<string[]> {
  const { events } = await readStream(`${server.url}/pipeline/${id}/logs`, server.apiKey);
  const wanted = Array.from({ length: LINES }, (_, index) => `line ${index}`).join(',');
  return ['one', 'two'].flatMap((stage) => {
    const of = events.filter(({ data }) => data['stage'] === stage);
    const lines = of
      .slice(of.findLastIndex(({ event }) => event === 'stage_started'))
      .filter(({ event, data }) => event === 'stage_log' && data['stream'] === 'stdout')
      .map(({ data }) => String(data['line']));
    return lines.join(',') === wanted ? [] : [`the log of ${id} ${stage}: ${lines.join(',')}`];
  });
}

/** Of one stage each beat is later than the one before it: in its attempt, or in a later one. */
function overlaps(of: string, all: readonly Beat[]): string[] {
  return all.flatMap((beat, at) => {
    const before = all[at - 1];
    if (before === undefined) return [];
    const isLater = beat.attempt > before.attempt || (beat.attempt === before.attempt && beat.line > before.line);
    return isLater ? [] : [`${of} ran twice: ${JSON.stringify(before)}, then ${JSON.stringify(beat)}`];
  });
}

async function podsLeft(): Promise<string[]> {
  let left: string[] = [];
  for (let tries = 0; tries < 60; tries += 1) {
    left = (await kubectl(lab, ['-n', NAMESPACE, 'get', 'pods', '-o', 'name'])).split('\n').filter(Boolean);
    if (left.length === 0) break;
    await pause(1_000);
  }
  return left;
}

async function kubeconfigOfAccount(): Promise<string> {
  const token = await kubectl(lab, ['-n', NAMESPACE, 'create', 'token', 'penstock-runner', '--duration=24h']);
  const admin = JSON.parse(await kubectl(lab, ['config', 'view', '--raw', '--minify', '-o', 'json'])) as {
    users: { user: unknown }[];
  };
  for (const each of admin.users) each.user = { token: token.trim() };
  const file = join(temporaryFolder('penstock-chaos-k8s-').path, 'kubeconfig');
  writeFileSync(file, JSON.stringify(admin), { mode: 0o600 });
  return file;
}

function pipelineOf(counterAddress: string, image: string): string {
  const script = [
    'i=0',
    `while [ $i -lt ${LINES} ]; do`,
    '  echo "line $i"',
    `  wget -q -O /dev/null "http://${counterAddress}/?run=$PENSTOCK_RUN_ID&stage=$PENSTOCK_STAGE&attempt=$PENSTOCK_ATTEMPT&line=$i" 2>/dev/null || :`,
    '  i=$((i+1))',
    '  sleep 0.2',
    'done',
  ];
  const stage = (name: string, after: string): string =>
    `  ${name}:\n${after}    image: ${image}\n    timeout: 5m\n    retry: {max: 10, on: [lost]}\n    run: |\n${script.map((line) => `      ${line}\n`).join('')}`;
  return `pipeline: {name: chaos}\nstages:\n${stage('one', '')}${stage('two', '    after: one\n')}`;
}
