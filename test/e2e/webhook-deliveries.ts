/**
 * Deliveries to a cluster whose ingests, scheduler and broker are killed meanwhile: so many, some of them twice, from a
 * seed. Then every promise of the intake is looked at: one run for each distinct delivery, every one ended, every answer of
 * a delivery naming the same run, and a git host that was told last of the newest run of each commit, and never asked to go back.
 */
import assert from 'node:assert';
import { setTimeout as pause } from 'node:timers/promises';
import { openStore, runCollections, RunsRepository } from '@penstock/store';
import {
  githubPush,
  githubSignature,
  makeRepository,
  startFakeHost,
  type FakeHost,
  type TestRepository,
} from '@penstock/webhook-ingest/testing';
import type { RunView } from '@penstock/run';
import { startCluster, type Cluster } from '../cluster/cluster.ts';
import { until } from '../support/wait.ts';
import { seededRandom } from './crash.ts';

export interface DeliveriesOptions {
  /** Sent in all, repetitions included. */
  readonly count: number;
  readonly seed: number;
  /** How many of them repeat an earlier one, 0 to 1. Default 0.3. */
  readonly repeated?: number | undefined;
  /** Between two kills, in milliseconds. Default 1,500. */
  readonly killEveryMs?: number | undefined;
  readonly say?: ((line: string) => void) | undefined;
}

export interface DeliveriesReport {
  readonly distinct: number;
  readonly repetitions: number;
  readonly kills: Readonly<Record<string, number>>;
  /** Requests that were not answered 200, and sent again. */
  readonly retried: number;
  readonly seconds: number;
}

interface Planned {
  readonly id: string;
  readonly repository: number;
}

const SECRET = 'a webhook secret';
const REPOSITORIES = 6;
const IN_FLIGHT = 16;
const SEND_MS_MAX = 120_000;
const RUN_PAGE = 500;

const PIPELINE = [
  'engine: any',
  'pipeline:',
  '  name: delivered',
  'stages:',
  '  only:',
  '    run: test -f here',
  '    retry: { max: 3, on: [lost] }',
].join('\n');

export async function deliver(options: DeliveriesOptions): Promise<DeliveriesReport> {
  const { count, seed, say = () => {} } = options;
  const random = seededRandom(seed);
  const began = performance.now();
  const plan = planOf(count, options.repeated ?? 0.3, random);
  const distinct = new Set(plan.map(({ id }) => id)).size;
  const host = await startFakeHost();
  const repositories = Array.from({ length: REPOSITORIES }, () => makeRepository());
  const commits = repositories.map((repository) => repository.commit({ '.pipeline.yaml': PIPELINE, here: 'x' }));
  const cluster = await startCluster({
    schedulers: 1,
    runners: 1,
    gateways: 0,
    auths: 0,
    registries: 0,
    ingests: 2,
    partitions: 2,
    slots: 4,
    env: {
      SERVICE_WEBHOOK_SECRET: SECRET,
      SERVICE_WEBHOOK_WAIT_SECS: '0',
      SERVICE_GIT_HOST_A_TOKEN: 'statuses',
      GIT_HOST_API_URL: host.url,
    },
  });
  try {
    const killer = new Killer(cluster, random, options.killEveryMs ?? 1_500, say);
    const { answers, retried } = await sendAll(cluster, plan, repositories, commits, (sent) =>
      say(`${sent} of ${count} deliveries are accepted`),
    );
    await killer.stop();
    say(`all are accepted, after ${seconds(began)} s and ${killer.count} kills; waiting for their runs`);
    const runIds = checkAnswers(answers, distinct);
    await checkRuns(cluster, runIds, say);
    await checkStatuses(host, runIds, newestOf(plan, answers), say);
    return { distinct, repetitions: count - distinct, kills: killer.kills, retried, seconds: seconds(began) };
  } finally {
    await cluster.stop();
    await host.close();
    for (const repository of repositories) repository.remove();
  }
}

/** Repetitions stand anywhere behind their first, often right beside it: then both are under way at once. */
function planOf(count: number, repeated: number, random: () => number): Planned[] {
  const plan: Planned[] = [];
  let repetitions = Math.floor(count * repeated);
  for (let index = 0; index < count; index++) {
    const earlier =
      plan[Math.floor(random() < 0.5 ? random() * plan.length : Math.max(0, plan.length - 1 - random() * 4))];
    if (earlier !== undefined && random() < repetitions / (count - index)) {
      plan.push(earlier);
      repetitions -= 1;
    } else plan.push({ id: `delivery-${index}`, repository: Math.floor(random() * REPOSITORIES) });
  }
  return plan;
}

async function sendAll(
  cluster: Cluster,
  plan: readonly Planned[],
  repositories: readonly TestRepository[],
  commits: readonly string[],
  onProgress: (sent: number) => void,
): Promise<{ readonly answers: ReadonlyMap<string, ReadonlySet<string>>; readonly retried: number }> {
  const answers = new Map<string, Set<string>>();
  const waiting = [...plan];
  let retried = 0;
  let sent = 0;
  await Promise.all(
    Array.from({ length: IN_FLIGHT }, async () => {
      for (let planned = waiting.shift(); planned !== undefined; planned = waiting.shift()) {
        const { id, repository } = planned;
        const body = JSON.stringify(
          githubPush({
            repository: `acme/repository-${repository}`,
            url: repositories[repository]?.url ?? '',
            commit: commits[repository] ?? '',
          }),
        );
        const headers = {
          'content-type': 'application/json',
          'x-github-event': 'push',
          'x-github-delivery': id,
          'x-hub-signature-256': githubSignature(body, SECRET),
        };
        const runId = await until(
          `the delivery ${id} is accepted`,
          async () => {
            const answer = await post(`${cluster.url}/webhook`, headers, body);
            if (answer === null) retried += 1;
            return answer ?? undefined;
          },
          SEND_MS_MAX,
        );
        answers.set(id, (answers.get(id) ?? new Set()).add(runId));
        sent += 1;
        if (sent % 1_000 === 0) onProgress(sent);
      }
    }),
  );
  return { answers, retried };
}

/** Null: not accepted, to be sent again. */
async function post(url: string, headers: Record<string, string>, body: string): Promise<string | null> {
  try {
    const response = await fetch(url, { method: 'POST', headers, body, signal: AbortSignal.timeout(30_000) });
    const result = (await response.json()) as { readonly run_id?: string | null; readonly status?: string };
    if (response.status === 200) {
      assert.equal(result.status, 'Pending');
      return result.run_id ?? null;
    }
    assert.ok(response.status >= 500, `a delivery was answered ${response.status}: ${JSON.stringify(result)}`);
  } catch (error) {
    if (error instanceof assert.AssertionError) throw error;
  }
  await pause(50);
  return null;
}

function checkAnswers(answers: ReadonlyMap<string, ReadonlySet<string>>, distinct: number): Set<string> {
  assert.equal(answers.size, distinct);
  for (const [id, runIds] of answers)
    assert.equal(runIds.size, 1, `the delivery ${id} was answered with the runs ${[...runIds].join(', ')}`);
  const runIds = new Set([...answers.values()].flatMap((each) => [...each]));
  assert.equal(runIds.size, distinct, 'no two deliveries share a run');
  return runIds;
}

async function checkRuns(cluster: Cluster, expected: ReadonlySet<string>, say: (line: string) => void): Promise<void> {
  const [, path = ''] = cluster.store.url.split('sqlite:');
  const store = await openStore({ kind: 'sqlite', path }, runCollections);
  try {
    const runs = new RunsRepository(store);
    let saidAt = 0;
    const all = await until(
      'every run has ended',
      async () => {
        const found = await allRuns(runs);
        const ended = found.filter(({ finishedAt }) => finishedAt !== null);
        if (Date.now() - saidAt > 5_000) {
          saidAt = Date.now();
          say(`${ended.length} of ${expected.size} runs have ended`);
        }
        await pause(200);
        return ended.length >= expected.size && ended.length === found.length ? found : undefined;
      },
      45_000 + expected.size * 300,
    );
    assert.deepEqual(new Set(all.map(({ id }) => id)), expected, 'exactly one run per distinct delivery');
    for (const run of all) assert.equal(run.status, 'SUCCESS', JSON.stringify(run));
  } finally {
    await store.close();
  }
}

async function allRuns(runs: RunsRepository): Promise<RunView[]> {
  const all: RunView[] = [];
  for (let before: string | undefined; ; before = all.at(-1)?.id) {
    const page = await runs.page({ tenants: ['service'], limit: RUN_PAGE, before });
    all.push(...page);
    if (page.length < RUN_PAGE) return all;
  }
}

/** Of each repository, all of whose deliveries are of one commit, the newest run: what its host has to show in the end. */
function newestOf(plan: readonly Planned[], answers: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  const newest: string[] = [];
  for (const { id, repository } of plan)
    for (const runId of answers.get(id) ?? []) if (runId > (newest[repository] ?? '')) newest[repository] = runId;
  return newest.filter((runId) => runId !== undefined);
}

async function checkStatuses(
  host: FakeHost,
  expected: ReadonlySet<string>,
  newest: readonly string[],
  say: (line: string) => void,
): Promise<void> {
  const statesOf = (): Map<string, string[]> => {
    const states = new Map<string, string[]>();
    for (const { body } of host.told) {
      const runId = body['target_url']?.split('/').at(-1) ?? '';
      states.set(runId, [...(states.get(runId) ?? []), body['state'] ?? '']);
    }
    return states;
  };
  let saidAt = 0;
  await until(
    'the host has the final status of the newest run of every commit',
    () => {
      const states = statesOf();
      const finals = newest.filter((runId) => states.get(runId)?.at(-1) === 'success').length;
      if (Date.now() - saidAt > 5_000) {
        saidAt = Date.now();
        say(`the host has the final status of the newest runs of ${finals} of ${newest.length} commits`);
      }
      return finals === newest.length;
    },
    60_000 + expected.size * 100,
  );
  for (const [runId, states] of statesOf()) {
    assert.ok(expected.has(runId), `the host was sent a status of a run ${runId} that nobody knows`);
    assert.ok(
      !states.includes('success') || !states.slice(states.indexOf('success')).includes('pending'),
      `the host was sent a status that goes back: ${states.join(', ')}`,
    );
  }
  const last = new Map(host.told.map(({ path, body }) => [path, body['target_url']?.split('/').at(-1) ?? '']));
  assert.deepEqual(new Set(last.values()), new Set(newest), 'the newest run of every commit was told last');
}

/** Kills one of them at a time, and starts it again at once. */
class Killer {
  readonly kills: Record<string, number> = {};
  readonly #stopped = new AbortController();
  readonly #done: Promise<void>;

  constructor(cluster: Cluster, random: () => number, everyMs: number, say: (line: string) => void) {
    this.#done = this.#kill(cluster, random, everyMs, say);
  }

  get count(): number {
    return Object.values(this.kills).reduce((sum, each) => sum + each, 0);
  }

  /** At the end each of them has been killed once. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#done;
  }

  async #kill(cluster: Cluster, random: () => number, everyMs: number, say: (line: string) => void): Promise<void> {
    const order = ['webhook-ingest', 'broker', 'scheduler'] as const;
    for (let round = 0; round < order.length || !this.#stopped.signal.aborted; round++) {
      await pause(everyMs * (0.5 + random()) * (this.#stopped.signal.aborted ? 0.3 : 1));
      const victim = round < order.length ? order[round] : order[Math.floor(random() * order.length)];
      if (victim === undefined) continue;
      this.kills[victim] = (this.kills[victim] ?? 0) + 1;
      say(`killing the ${victim}`);
      if (victim === 'broker') {
        await cluster.broker.kill();
        await cluster.broker.restart();
      } else {
        const index = Math.floor(random() * cluster.of(victim).length);
        await cluster.kill(victim, index);
        cluster.at(victim, index).start();
      }
    }
    await cluster.ready();
  }
}

function seconds(since: number): number {
  return Math.round((performance.now() - since) / 1000);
}
