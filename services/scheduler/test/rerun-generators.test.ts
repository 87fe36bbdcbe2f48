/** Reruns of runs to which stages have added others (P29, P30): by the owner of a partition, its journal and its successor. */
import { parsePipeline } from '@penstock/pipeline';
import { isAdopting, readAdded, type RunEvent } from '@penstock/run';
import { LiveRun } from '@penstock/scheduler/testing';
import { expect, it } from 'vitest';
import { readAddedText } from '../src/shell/added-texts.ts';
import { definitions, Harness, settings, stage, text } from './support.ts';

const BIG = Array.from({ length: 6 }, (_, index) => `s${index}`);
const YAML = text(
  [
    stage('plan', { generates: { secrets: [], audiences: [] } }),
    ...BIG.map((name) => stage(name, { outputs: ['v'] })),
    stage('deploy', { after: ['plan', ...BIG] }),
  ],
  { generation: { env: {}, extensions: [] } },
);
const TEXT = 'a: {run: x, outputs: [v]}\nb: {after: a, run: x}';

let credits = 0;

/** Grants the next stage of the run, and ends it. */
function finish(
  world: Harness,
  runId: string,
  outputs?: Record<string, string>,
  status: 'success' | 'failed' = 'success',
) {
  world.credit('r1-s', 'r1', ++credits);
  world.settle();
  const sent = world.jobs.findLast(({ message }) => message.runId === runId);
  if (sent === undefined) throw new Error('nothing was granted');
  sent.answer('accepted');
  const { stage: name, attempt, session, credit } = sent.message;
  const request = { runId, stage: name, attempt, session, credit, logBytes: 1, outputs } as const;
  const given = sent.message.generates === undefined ? undefined : TEXT;
  const adds =
    given === undefined ? undefined : world.partition.addedOptions({ ...request, status, added: given }, 'r1');
  const parsed = given === undefined || adds === undefined ? undefined : parsePipeline(given, adds.options);
  const added = { text: given, meaning: parsed?.ok === true ? parsed.definition : undefined };
  world.partition.result(
    { ...request, status, ...(given === undefined ? {} : { added: given }) },
    'r1',
    () => {},
    added,
  );
  world.settle();
  return name;
}

/** All have succeeded but `deploy`. */
function failed(world: Harness): string {
  const { id } = world.create(YAML);
  world.settle();
  const large = { v: '\u0001'.repeat(60_000) };
  for (let count = 0; count < 9; count++) finish(world, id, large);
  expect(finish(world, id, undefined, 'failed')).toBe('deploy');
  return id;
}

function live(world: Harness, id: string): LiveRun {
  const run = [...world.bare.liveRuns].find((one) => one.id === id);
  if (run === undefined) throw new Error('the run is not in memory');
  return run;
}

/** As the log has them. */
function journalOf({ appended, inFlight }: Harness, id: string): RunEvent[] {
  const events = appended
    .slice(0, appended.length - inFlight)
    .flatMap(({ commit }) => commit.runs.filter((run) => run.id === id).flatMap((run) => run.events));
  return structuredClone(events);
}

async function restored(id: string, events: RunEvent[]): Promise<LiveRun> {
  const { definition } = definitions.find(YAML);
  await readAdded(definition, events, (...asked) => readAddedText(...asked, 'ada'));
  return LiveRun.restore(id, definition, { events, sequence: 90 }, settings);
}

const adopted = (run: LiveRun) => run.state.stages.filter((one) => one.adopted === true).map(({ name }) => name);

it('what was added stands in the journal of the rerun, and is granted where it did not succeed', async () => {
  const world = new Harness();
  world.session('r1-s');
  const parent = failed(world);
  const before = structuredClone(live(world, parent).events);
  const { id } = world.create(YAML, { rerun: { parent, from: ['plan/b'] } });
  world.settle();
  const events = journalOf(world, id);
  expect(events.filter(({ type }) => type === 'stages_added')).toMatchObject([
    { stage: 'plan', text: TEXT, stages: [] },
  ]);
  expect(adopted(live(world, id))).toEqual(['plan', ...BIG, 'plan/a']);
  const again = await restored(id, events);
  expect(JSON.stringify(again.state)).toBe(JSON.stringify(live(world, id).state));
  expect(finish(world, id)).toBe('plan/b');
  expect(finish(world, id)).toBe('deploy');
  expect(live(world, id).state.status).toBe('SUCCESS');
  expect(live(world, parent).events).toEqual(before);
  expect(world.jobs.filter(({ message }) => message.runId === id).map(({ message }) => message.stage)).toEqual([
    'plan/b',
    'deploy',
  ]);
});

it('a successor goes on with what was not taken over yet, of a parent that it reads from the store', async () => {
  const world = new Harness();
  world.session('r1-s');
  const parent = failed(world);
  const { id } = world.create(YAML, { rerun: { parent, onlyFailed: true } });
  world.acknowledge();
  world.acknowledge();
  const events = journalOf(world, id);
  expect(events.map(({ type }) => type)).toContain('stages_added');
  const run = await restored(id, events);
  expect(isAdopting(run.state)).toBe(true);
  const document = await restored(parent, journalOf(world, parent));
  const next = new Harness({ runs: [run], start: false });
  next.documents.set(parent, { events: [...document.events], sequence: 80 });
  next.start({ sequence: 100, commitNumber: 1, runs: [run] });
  next.session('r1-s');
  next.answerReads();
  next.settle();
  expect(adopted(live(next, id))).toEqual(['plan', ...BIG, 'plan/a', 'plan/b']);
  expect(finish(next, id)).toBe('deploy');
  expect(live(next, id).state.status).toBe('SUCCESS');
});

it('a successor that cannot read the file knows the stages that were taken over by their names', () => {
  const world = new Harness();
  world.session('r1-s');
  const parent = failed(world);
  const { id } = world.create(YAML, { rerun: { parent, onlyFailed: true } });
  world.settle();
  finish(world, id, undefined, 'failed');
  const run = LiveRun.unrestorable(id, { events: journalOf(world, id), sequence: 9 }, settings, 'not restored');
  expect(adopted(run)).toEqual(['plan', ...BIG, 'plan/a', 'plan/b']);
  expect(run.state.status).toBe('FAILED');
});
