/** P21: the event stream of a cancelled run is the same live and afterwards, whatever the clocks say and whoever is cut off. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readStream, type StreamEvent } from '../support/sse.ts';
import { startCluster, type Cluster } from './cluster.ts';

let cluster: Cluster;

/** The wall clock of a service, an hour behind that of the runner. */
const HOUR_BEHIND = {
  NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent('const now = Date.now; Date.now = () => now() - 3_600_000;')}`,
};

beforeAll(async () => {
  cluster = await startCluster({
    schedulers: 1,
    runners: 1,
    gateways: 1,
    partitions: 2,
    slots: 2,
    // With the lease as it is by default: of the shortest, three seconds without a renewal on a busy machine would end what is to be cancelled.
    envOf: { scheduler: HOUR_BEHIND, gateway: HOUR_BEHIND },
  });
}, 120_000);
afterAll(async () => {
  await cluster.stop();
});

async function graphql<T>(query: string, variables: Record<string, unknown>): Promise<T> {
  const response = await fetch(`${cluster.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${cluster.apiKey}` },
    body: JSON.stringify({ query, variables }),
  });
  const { data, errors } = (await response.json()) as { data: T; errors?: unknown };
  if (errors !== undefined) throw new Error(JSON.stringify(errors));
  return data;
}

async function trigger(script: string, waitSeconds: number): Promise<{ readonly id: string; readonly status: string }> {
  const yaml = `pipeline:\n  name: cancelled\nstages:\n  loud:\n    run: "${script}"\n`;
  const { triggerPipeline } = await graphql<{ triggerPipeline: { run: { id: string; status: string } } }>(
    'mutation ($yaml: String!, $wait: Int) { triggerPipeline(yaml: $yaml, waitSeconds: $wait) { run { id status } } }',
    { yaml, wait: waitSeconds },
  );
  return triggerPipeline.run;
}

interface Watched {
  /** Resolves when this line was told. */
  line(text: string): Promise<void>;
  readonly whole: Promise<readonly StreamEvent[]>;
}

function watch(runId: string): Watched {
  const seen = new Map<string, PromiseWithResolvers<void>>();
  const of = (text: string): PromiseWithResolvers<void> => {
    let one = seen.get(text);
    if (one === undefined) seen.set(text, (one = Promise.withResolvers<void>()));
    return one;
  };
  const onEvent = ({ data }: StreamEvent): void => of(String(data['line'])).resolve();
  const whole = readStream(`${cluster.url}/pipeline/${runId}/logs`, cluster.apiKey, { onEvent });
  return { line: (text) => of(text).promise, whole: whole.then(({ events }) => events) };
}

const linesOf = (events: readonly StreamEvent[]): string[] =>
  events.filter(({ event }) => event === 'stage_log').map(({ data }) => JSON.stringify(data));
const othersOf = (events: readonly StreamEvent[]): string[] =>
  events.filter(({ event }) => event !== 'stage_log').map(({ data }) => JSON.stringify(data));

async function expectReplayed(runId: string, live: readonly StreamEvent[]): Promise<void> {
  const replay = await watch(runId).whole;
  expect(linesOf(replay)).toEqual(linesOf(live));
  expect(othersOf(replay)).toEqual(othersOf(live));
}

const CANCEL = 'mutation ($id: String!) { cancelPipeline(id: $id) { run { status } } }';

it('with a scheduler and a gateway an hour behind: what a stage prints while it is stopped is told, and replayed', async () => {
  const { id } = await trigger(
    "exec 2>/dev/null; trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done",
    0,
  );
  const live = watch(id);
  await live.line('ready');
  expect(await graphql(CANCEL, { id })).toEqual({ cancelPipeline: { run: { status: 'CANCELLED' } } });
  const events = await live.whole;
  expect(events.map(({ event, data }) => data['line'] ?? event)).toEqual([
    'stage_started',
    'ready',
    'pipeline_cancelling',
    'bye',
    'pipeline_cancelled',
  ]);
  await expectReplayed(id, events);
}, 60_000);

it('with a runner that is frozen at the cancel: the end is told when its fence has passed, and nothing is added when it wakes', async () => {
  const { id } = await trigger("trap '' TERM; n=0; while :; do n=$((n+1)); echo line $n; sleep 0.01; done", 0);
  const live = watch(id);
  await live.line('line 20');
  cluster.freeze('runner', 0);
  expect(await graphql(CANCEL, { id })).toEqual({ cancelPipeline: { run: { status: 'CANCELLED' } } });
  const events = await live.whole;
  expect(events.at(-1)?.event).toBe('pipeline_cancelled');
  await expectReplayed(id, events);
  cluster.resume('runner', 0);
  // It has reported all that it had when it has run something else.
  expect((await trigger('echo awake', 60)).status).toBe('SUCCESS');
  await expectReplayed(id, events);
}, 120_000);
