/**
 * A cluster in which stages get a secret and leave files and a cache, each stopped at one point of that (`handover-points.ts`)
 * while a process is killed. It owns the cluster, and looks afterwards at all that was promised: each stage has ended as its
 * `retry` says, a success has what it left and nothing else, nobody else has anything, and the sweep leaves no byte behind.
 */
import assert from 'node:assert';
import { createHash, randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { jetstreamManager } from '@nats-io/jetstream';
import { connectBus, connectionOf, type Bus } from '@penstock/bus';
import { loadTiers } from '@penstock/config';
import { openObjectStore, type ObjectStore } from '@penstock/object-store';
import { PACKAGES_BUCKET, registryCollections, startRegistry } from '@penstock/registry';
import { CacheEntries, openStore, runCollections, storeAddressOf } from '@penstock/store';
import { silentLog } from '@penstock/telemetry/log';
import { until } from '../support/wait.ts';
import { startCluster, type Cluster } from './cluster.ts';
import { HandoverStops, type HandoverPoint } from './handover-points.ts';

export type Victim = 'runner' | 'scheduler' | 'broker' | 'registry';

interface StageOfTest {
  readonly runId: string;
  readonly name: string;
  readonly at: HandoverPoint;
  readonly hasRetry: boolean;
}

interface EndedRun {
  readonly status: string;
  readonly stages: readonly {
    readonly status: string;
    readonly reason: string | null;
    readonly outputs: readonly { readonly key: string; readonly value: string }[] | null;
    readonly attempts: readonly { readonly status: string }[];
  }[];
}

const PIPELINE = 'handover';
/** More than two parts of the way to the storage. */
const LARGE_BYTES = 1_300_000;
/** Of a cache that goes in one message, and of one that goes straight. */
const CACHED_BYTES = 10;
const STRAIGHT_CACHED_BYTES = 700_000;
/** Where its upload is cut off: more than is on its way at a time, so that what was not read of it is read again. */
const CUT_BYTES = 8_000_000;
/** A machine with much else to do, a lease, a membership, and the second attempt. */
const PATIENCE_MS = 120_000;

/** `straight`: large contents go past the broker. */
export async function startHandovers(slots: number, { straight = false } = {}): Promise<Handovers> {
  const key = (): string => randomBytes(32).toString('base64');
  const [masterKey, slipKey] = [key(), key()];
  const cluster = await startCluster({
    ...{ schedulers: 1, runners: 1, gateways: 1, partitions: 4, slots, linked: true },
    envOf: {
      auth: { SERVICE_MASTER_KEY: masterKey, SERVICE_SLIP_KEY: slipKey },
      scheduler: { SERVICE_SLIP_KEY: slipKey },
      ...(straight ? { registry: { SERVICE_CONTENTS_LISTEN: '127.0.0.1:0' } } : {}),
    },
  });
  const secret = `handover-${randomBytes(12).toString('hex')}`;
  const handovers = new Handovers(cluster, secret);
  try {
    await handovers.graphql(
      'mutation ($value: String, $pipeline: String) { setSecret(name: "TOKEN", value: $value, pipeline: $pipeline) { name } }',
      { value: secret, pipeline: PIPELINE },
    );
    return handovers;
  } catch (error) {
    await cluster.stop();
    throw error;
  }
}

export class Handovers {
  readonly #cluster: Cluster;
  readonly #secret: string;
  /** The runs that have kept something, and what: its hashes. */
  readonly #kept = new Map<string, ReadonlySet<string>>();
  readonly #cached = new Set<string>();

  constructor(cluster: Cluster, secret: string) {
    this.#cluster = cluster;
    this.#secret = secret;
  }

  async stop(): Promise<void> {
    await this.#cluster.stop();
  }

  async graphql<T>(query: string, variables: Record<string, unknown> = {}): Promise<T> {
    const { url, apiKey } = this.#cluster;
    return await until('the API answers', async () => {
      const response = await fetch(`${url}/graphql`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` },
        body: JSON.stringify({ query, variables }),
      });
      if (response.status === 503) return false;
      const { data, errors } = (await response.json()) as {
        data: T;
        errors?: { message: string; extensions?: { code?: string } }[];
      };
      if (errors?.[0]?.extensions?.code === 'UNAVAILABLE') return false;
      assert.equal(errors, undefined, JSON.stringify(errors));
      return data;
    });
  }

  /** Two stages at each point, one of which may be retried, and then the kill of them all. How many were looked at. */
  async killAt(victim: Victim, points: readonly HandoverPoint[]): Promise<number> {
    const stops = new HandoverStops();
    const link = this.#cluster.links.get('runner-0');
    assert(link, 'the runner has a link');
    // Cut by this, and connected again when it is ready.
    link.look(stops.holdsBack);
    await this.#cluster.ready();
    const stages: StageOfTest[] = [];
    for (const at of points) {
      for (const hasRetry of [true, false]) {
        const name = `${victim}-${at.replaceAll(' ', '-')}${hasRetry ? '' : '-once'}`;
        await stops.stop(name, at);
        stages.push({ runId: await this.#begin(name, at, hasRetry), name, at, hasRetry });
      }
    }
    await until('every stage stands at its point', () => stops.missing.length === 0, PATIENCE_MS).catch(
      (error: unknown) => {
        throw new Error(`these do not: ${stops.missing.join(', ')}`, { cause: error });
      },
    );
    await this.#kill(victim);
    stops.end();
    // To whom lives; a connection that has ended loses it.
    link.letGo();
    await this.#startAgain(victim);
    for (const stage of stages) await this.#check(victim, stage);
    stops.close();
    link.look(null);
    await this.#cluster.ready();
    return stages.length;
  }

  async #begin(name: string, at: HandoverPoint, hasRetry: boolean): Promise<string> {
    const yaml = `pipeline: {name: ${PIPELINE}}
stages:
  ${name}:
    secrets: {TOKEN: TOKEN, KEY: {secret: TOKEN, file: true}}
    cache: {key: ${name}, paths: [cached]}
    artifacts: [large, small]
    outputs: [large]
    ${hasRetry ? 'retry: {max: 3, on: [lost], delay: 1s}' : ''}
    run: |
      test "$TOKEN" = "$(cat "$KEY")" || exit 9
      test "\${#TOKEN}" = ${this.#secret.length} || exit 9
      mkdir -p cached; head -c ${at === 'cache halfway' || at === 'cache answered' ? STRAIGHT_CACHED_BYTES : CACHED_BYTES} /dev/urandom > cached/large
      echo "${name} $PENSTOCK_ATTEMPT" | tee small > cached/name
      head -c ${at === 'part on its way' ? CUT_BYTES : LARGE_BYTES} /dev/urandom > large
      echo "large=$(sha256sum < large | cut -d' ' -f1)" >> "$SERVICE_OUTPUT"
`;
    const { triggerPipeline } = await this.graphql<{ triggerPipeline: { run: { id: string } } }>(
      'mutation ($yaml: String!) { triggerPipeline(yaml: $yaml, waitSeconds: 0) { run { id } } }',
      { yaml },
    );
    return triggerPipeline.run.id;
  }

  async #kill(victim: Victim): Promise<void> {
    if (victim === 'broker') await this.#cluster.broker.kill();
    else await this.#cluster.kill(victim, 0);
  }

  async #startAgain(victim: Victim): Promise<void> {
    if (victim === 'broker') await this.#cluster.broker.restart();
    else this.#cluster.at(victim, 0).start();
    await this.#cluster.ready();
  }

  async #check(victim: Victim, { runId, name, at, hasRetry }: StageOfTest): Promise<void> {
    const about = `${victim} killed at '${at}'${hasRetry ? '' : ', no retry'}`;
    const run = await until(`${about}: the run ends`, () => this.#endOf(runId), PATIENCE_MS);
    const [stage] = run.stages;
    assert(stage);
    const told = `${about}: ${JSON.stringify(run)}`;
    if (hasRetry) assert.equal(run.status, 'SUCCESS', told);
    else if (run.status !== 'SUCCESS') assert.deepEqual([run.status, stage.reason], ['FAILED', 'runner_lost'], told);
    // Only a kill of the runner costs an attempt, and none whose result it had on disk.
    if (victim === 'runner' && !at.startsWith('result')) {
      assert.equal(run.status, hasRetry ? 'SUCCESS' : 'FAILED', told);
      assert.equal(stage.attempts.length, hasRetry ? 2 : 1, told);
    }
    if (victim === 'registry') assert.deepEqual([run.status, stage.attempts.length], ['SUCCESS', 1], told);
    const files = await this.#filesOf(runId);
    if (run.status !== 'SUCCESS') {
      assert.deepEqual(files, [], `${about}: nothing of a stage that failed is seen`);
      assert.equal((await this.#download(`/pipeline/${runId}/artifacts/${name}`)).status, 404, about);
      return;
    }
    assert.deepEqual(files.map(({ key }) => key).toSorted(), ['large', 'small'], told);
    const hashes = new Set<string>();
    for (const { key, value, sha256 } of files) {
      const bytes = Buffer.from(await (await this.#download(value)).arrayBuffer());
      assert.equal(createHash('sha256').update(bytes).digest('hex'), sha256, `${about}: ${key} is what was kept`);
      hashes.add(sha256);
      if (key === 'large')
        assert.equal(
          sha256,
          stage.outputs?.find((output) => output.key === 'large')?.value,
          `${about}: of its attempt`,
        );
      else assert.equal(String(bytes).split(' ')[0], name, `${about}: of its stage`);
    }
    this.#kept.set(runId, hashes);
    this.#cached.add(name);
  }

  async #endOf(runId: string): Promise<EndedRun | false> {
    const { run } = await this.graphql<{ run: EndedRun }>(
      'query ($id: String!) { run(id: $id) { status stages { status reason outputs { key value } attempts { status } } } }',
      { id: runId },
    );
    return ['SUCCESS', 'FAILED', 'CANCELLED'].includes(run.status) && run;
  }

  async #filesOf(id: string): Promise<readonly { key: string; value: string; sha256: string }[]> {
    const { artifacts } = await this.graphql<{ artifacts: { key: string; value: string; sha256: string | null }[] }>(
      'query ($id: String!) { artifacts(run_id: $id) { key value sha256 } }',
      { id },
    );
    return artifacts.flatMap(({ sha256, ...rest }) => (sha256 === null ? [] : [{ ...rest, sha256 }]));
  }

  async #download(path: string): Promise<Response> {
    const { url, apiKey } = this.#cluster;
    return await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${apiKey}` } });
  }

  /** By a registry of this process's own, for which everything is old enough. The objects that are left and nothing names. */
  async swept(): Promise<readonly string[]> {
    const bus = await connectBus({ servers: this.#cluster.broker.url, name: 'sweep', log: silentLog });
    const store = await openStore(storeAddressOf(this.#cluster.store.url), [...runCollections, ...registryCollections]);
    const objects = await openObjectStore('nats', { bus, bucket: PACKAGES_BUCKET });
    const registry = await startRegistry({
      bus,
      store,
      objects,
      tiers: loadTiers(),
      policy: 'any',
      logRetentionMs: 1e12,
      partitions: this.#cluster.partitions,
      log: silentLog,
    });
    try {
      const entries = new CacheEntries(store);
      const keys = async (): Promise<string[]> => (await Array.fromAsync(entries.all())).map(({ key }) => key);
      await until(
        'every success has its cache',
        async () => this.#cached.isSubsetOf(new Set(await keys())),
        PATIENCE_MS,
      ).catch(async (error: unknown) => {
        const lacking = this.#cached.difference(new Set(await keys()));
        throw new Error(`these have none: ${[...lacking].join(', ')}`, { cause: error });
      });
      const named = await Array.fromAsync(entries.all());
      assert.deepEqual(new Set(named.map(({ key }) => key)), this.#cached, 'those of successes, and no others');
      const archives = new Set(named.map(({ sha256 }) => sha256));
      const deadline = performance.now() + PATIENCE_MS;
      // A run that has just ended may be open for a moment yet; until then all of it is kept.
      for (;;) {
        await registry.artifacts.sweep({ olderThanMs: 0, expiredForMs: 0 });
        await registry.caches.sweep(0);
        const stray = [...(await this.#strayOf(objects, archives)), ...(await cutOff(bus, objects))];
        if (stray.length === 0 || performance.now() > deadline) return stray;
      }
    } finally {
      await registry.close();
      await store.close();
      await bus.close();
    }
  }

  /** Every object that nothing names; of each run that has kept something its list is one. */
  async #strayOf(objects: ObjectStore, archives: ReadonlySet<string>): Promise<string[]> {
    const stray: string[] = [];
    const unnamed = new Map<string, string[]>();
    for await (const { key } of objects.list('')) {
      const [kind = '', owner = '', sha256 = ''] = key.split('/');
      if (kind === 'caches' && !archives.has(sha256)) stray.push(key);
      if (kind !== 'artifacts' || this.#kept.get(owner)?.has(sha256) === true) continue;
      unnamed.set(owner, [...(unnamed.get(owner) ?? []), key]);
    }
    for (const [owner, keys] of unnamed) if (!this.#kept.has(owner) || keys.length > 1) stray.push(...keys);
    return stray;
  }

  /** The files that the secret stands in: those of every process, and what a killed runner has left in memory. */
  leaked(): readonly string[] {
    const files = [this.#cluster.folder, this.#cluster.broker.storeDir].flatMap(filesBelow);
    const inMemory = readdirSync('/dev/shm', { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && entry.name.startsWith('.penstock-'))
      .flatMap(({ name }) => filesBelow(join('/dev/shm', name)));
    return [...files, ...inMemory].filter((file) => {
      try {
        return readFileSync(file).includes(this.#secret);
      } catch {
        // Gone, as files of other tests in memory go.
        return false;
      }
    });
  }
}

/** Puts whose chunks lie in the storage, and whose object does not. */
async function cutOff(bus: Bus, objects: ObjectStore): Promise<string[]> {
  const manager = await jetstreamManager(connectionOf(bus));
  const { state } = await manager.streams.info(`OBJ_${PACKAGES_BUCKET}`, {
    subjects_filter: `$O.${PACKAGES_BUCKET}.C.>`,
  });
  const puts = new Set(Object.keys(state.subjects ?? {}).map((subject) => subject.split('.').at(-2)));
  const whole = (await Array.fromAsync(objects.list(''))).filter(({ size }) => size > 0).length;
  return puts.size > whole ? [`${puts.size - whole} unfinished puts`] : [];
}

function filesBelow(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));
  } catch {
    return [];
  }
}
