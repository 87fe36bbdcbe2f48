/**
 * `npm run keda:k8s -- --lab <folder> --keda <folder>`: the runners of `k8s/components/keda`, scaled by KEDA itself. `--keda` is what `build.sh` has made; of the
 * lab the control plane is enough, started with APISERVER_ARGS=--enable-aggregator-routing=true and an ADVERTISE that is not loopback.
 *
 * The API server, the controllers and Prometheus are real. Services are processes of this machine, and so are runners: as many as the StatefulSet is
 * to have, in the place of a kubelet. Runners come from none by what waits, stay while Prometheus is away, and go to none; no run is lost. Ends
 * with 1 where one of that does not hold.
 */
import { once } from 'node:events';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { pause } from '@penstock/async';
import { startCluster, type Cluster } from '../../cluster/cluster.ts';
import { temporaryFolder, TRIGGER } from '../../support/server.ts';
import { kubectl, type LabPlace } from '../lab-faults.ts';
import { Keda } from './keda.ts';
import { Prometheus } from './prometheus.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const text = { type: 'string' } as const;
const { values } = parseArgs({ options: { lab: text, keda: text } });
if (values.lab === undefined || values.keda === undefined) throw new Error('--lab and --keda name their folders');
const lab: LabPlace = { folder: values.lab, run: join(values.lab, 'run'), env: {} };
const NAMESPACE = 'penstock';
/** Of one runner, as the ScaledObject has it. */
const SLOTS = 8;
const STAGES = 18;
const RUNNERS_MAX = 4;
/** Shorter than in the component, for whoever watches. */
const TIMES = { pollingInterval: 5, cooldownPeriod: 20 };
const OUTAGE_MS = 45_000;
const SCALES_MS_MAX = 180_000;
const LOOK_MS = 1_000;

let violations = 0;
const begun = Date.now();
const say = (line: string): void =>
  void process.stdout.write(`${((Date.now() - begun) / 1_000).toFixed(1).padStart(6)} s  ${line}\n`);
const demand = (holds: boolean, line: string): void => {
  if (!holds) violations += 1;
  say(`${holds ? 'holds' : 'DOES NOT HOLD'}: ${line}`);
};

const temporary = temporaryFolder('penstock-keda-');
const folder = temporary.path;
const gate = join(folder, 'gate');
const prometheus = new Prometheus(join(folder, 'prometheus'), await freePort());
const keda = new Keda(lab, values.keda);
let cluster: Cluster | undefined;
let isOver = false;
/** What the StatefulSet is to have. */
let wantedNow = -1;
let following: Promise<void> | undefined;
try {
  cluster = await startCluster({
    ...{
      schedulers: 2,
      runners: RUNNERS_MAX,
      gateways: 1,
      auths: 0,
      registries: 0,
      ingests: 0,
      partitions: 4,
      slots: SLOTS,
    },
  });
  for (let at = 0; at < RUNNERS_MAX; at += 1) await cluster.kill('runner', at, 'SIGTERM');
  prometheus.scrapes(cluster);
  await prometheus.start();
  await keda.forget();
  await clear();
  await keda.start(addressOfThisMachine());
  await applyRunners();
  say('KEDA, Prometheus and the services are there');
  following = follow(cluster);
  await eventually('no runner is wanted', () => wantedNow === 0);
  say('nothing waits: no runner');
  await scale(cluster);
} catch (error) {
  violations += 1;
  say(String(error instanceof Error ? error.stack : error));
} finally {
  isOver = true;
  await following;
  // While KEDA is there: it has to let its object go.
  await clear().catch((error: unknown) => say(String(error)));
  await keda.stop();
  await prometheus.stop();
  await cluster?.stop();
  temporary.remove();
}
process.exitCode = violations === 0 ? 0 : 1;

/** From none to three to none. A run each, for the stages of one run are where its folder is. */
async function scale(services: Cluster): Promise<void> {
  const yaml = `pipeline: {name: one}\nstages:\n  only: {run: "until [ -e ${gate} ]; do sleep 0.5; done"}\n`;
  const asked = Date.now();
  const ids = await Promise.all(
    Array.from({ length: STAGES }, async () => {
      const answer = await graphql<Triggered>(services, TRIGGER, { yaml, waitSeconds: 0 });
      return answer.triggerPipeline.run.id;
    }),
  );
  const wanted = Math.ceil(STAGES / SLOTS);
  await eventually('the first runner is wanted', () => wantedNow > 0);
  say(`${STAGES} stages wait: the first runner after ${seconds(asked)} s`);
  const most = await eventually('all are wanted', () => wantedNow >= wanted && wantedNow);
  demand(most === wanted, `${STAGES} stages are ${most} runners after ${seconds(asked)} s`);
  await eventually('all stages run', async () => (await statusesOf(services, ids)).every((each) => each === 'RUNNING'));
  say(`all stages run after ${seconds(asked)} s`);

  // What it has read last it tells for five minutes after its next start: that nothing waits any more.
  await eventually('Prometheus has read that', async () => (await prometheus.figure('penstock_queue_demand')) === null);
  await prometheus.stop();
  const away = Date.now();
  const seen = new Set<number>();
  while (Date.now() - away < OUTAGE_MS) {
    seen.add(wantedNow);
    await pause(LOOK_MS);
  }
  demand(
    seen.size === 1 && seen.has(wanted),
    `Prometheus is away for ${seconds(away)} s: ${[...seen].join(', ')} runners`,
  );
  await prometheus.start();

  writeFileSync(gate, '');
  const statuses = await eventually('the runs have ended', async () => {
    const now = await statusesOf(services, ids);
    return now.every((each) => !['PENDING', 'QUEUED', 'RUNNING'].includes(each)) && now;
  });
  const ended = Date.now();
  demand(
    statuses.every((each) => each === 'SUCCESS'),
    `every run succeeds: ${[...new Set(statuses)].join(', ')}`,
  );
  await eventually('no runner is wanted', () => wantedNow === 0);
  say(`no runner is wanted ${seconds(ended)} s after the last end`);
}

/** `k8s/base` with the component, whose Prometheus is the one here. No node is there for their Pods. */
async function applyRunners(): Promise<void> {
  for (const name of ['deploy', 'k8s'])
    cpSync(join(ROOT, name), join(folder, name), {
      recursive: true,
      filter: (path) => !/\/(secrets|settings\.env)$/.test(path),
    });
  const overlay = join(folder, 'k8s/overlays/lab');
  mkdirSync(overlay);
  const times = Object.entries(TIMES).map(([name, value]) => ({ op: 'add', path: `/spec/${name}`, value }));
  const address = { op: 'replace', path: '/spec/triggers/0/metadata/serverAddress', value: prometheus.url };
  const kustomization = {
    apiVersion: 'kustomize.config.k8s.io/v1beta1',
    kind: 'Kustomization',
    resources: ['../../base'],
    components: ['../../components/keda'],
    // KEDA reads what the containers of its target are given, and refuses one without.
    configMapGenerator: [{ name: 'penstock', namespace: NAMESPACE, literals: ['SERVICE_MODE=production'] }],
    patches: [{ target: { kind: 'ScaledObject' }, patch: JSON.stringify([...times, address]) }],
  };
  writeFileSync(join(overlay, 'kustomization.yaml'), JSON.stringify(kustomization));
  await kubectl(lab, ['apply', '-k', overlay]);
}

/** In the place of a kubelet: runners start and are stopped as the StatefulSet is to have them, the highest number first. */
async function follow(services: Cluster): Promise<void> {
  const ending = new Set<Promise<unknown>>();
  for (let before = 0; !isOver;) {
    const now = await replicas().catch(() => before);
    wantedNow = now;
    if (now !== before) say(`the StatefulSet is to have ${now} (before: ${before})`);
    for (let at = before; at < now; at += 1) if (!services.at('runner', at).lives) services.at('runner', at).start();
    for (let at = now; at < before; at += 1) ending.add(services.kill('runner', at, 'SIGTERM'));
    before = now;
    prometheus.scrapes(services);
    await pause(LOOK_MS);
  }
  await Promise.all(ending);
}

async function eventually<T>(what: string, look: () => T | false | Promise<T | false>): Promise<T> {
  const deadline = Date.now() + SCALES_MS_MAX;
  for (;;) {
    const seen = await look();
    if (seen !== false) return seen;
    if (keda.ended.length > 0)
      throw new Error(`it has ended, see its log in ${lab.folder}/keda-run: ${keda.ended.join(', ')}`);
    if (Date.now() > deadline) throw new Error(`not within ${SCALES_MS_MAX} ms: ${what}`);
    await pause(LOOK_MS);
  }
}

async function clear(): Promise<void> {
  await kubectl(lab, [
    '-n',
    NAMESPACE,
    'delete',
    'scaledobject',
    'runner',
    '--ignore-not-found',
    '--timeout=30s',
  ]).catch(() => '');
  await kubectl(lab, ['delete', 'namespace', NAMESPACE, 'penstock-stages', '--ignore-not-found', '--timeout=50s']);
}

async function replicas(): Promise<number> {
  return Number(
    await kubectl(lab, ['-n', NAMESPACE, 'get', 'statefulset', 'runner', '-o', 'jsonpath={.spec.replicas}']),
  );
}

interface Triggered {
  readonly triggerPipeline: { readonly run: { readonly id: string } };
}

async function statusesOf(services: Cluster, ids: readonly string[]): Promise<string[]> {
  const { runs } = await graphql<{ runs: { id: string; status: string }[] }>(
    services,
    '{ runs(limit: 100) { id status } }',
    {},
  );
  return ids.map((id) => runs.find((run) => run.id === id)?.status ?? 'NOT THERE');
}

async function graphql<T>(services: Cluster, query: string, variables: Record<string, unknown>): Promise<T> {
  return await eventually('the API answers', async () => {
    const response = await fetch(`${services.url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${services.apiKey}` },
      body: JSON.stringify({ query, variables }),
    });
    const { data, errors } = (await response.json()) as { data: T; errors?: unknown };
    return errors === undefined && data;
  });
}

function addressOfThisMachine(): string {
  const all = Object.values(networkInterfaces()).flat();
  const found = all.find((each) => each?.family === 'IPv4' && !each.internal && !each.address.startsWith('10.244.'));
  if (found === undefined) throw new Error('this machine has no address but loopback');
  return found.address;
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

function seconds(since: number): string {
  return ((Date.now() - since) / 1_000).toFixed(0);
}
