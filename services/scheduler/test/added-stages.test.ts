/** Stages that results add to their runs (P29): one commit, checked again by the owner, bounded before they are read, and known to a successor. */
import { deflateRawSync } from 'node:zlib';
import { packText, unpackText, type ResultRequest } from '@penstock/bus';
import { diagnosticLine, parsePipeline, PIPELINE_LIMITS } from '@penstock/pipeline';
import { NotAdded, planOf, readAdded, type RunEvent } from '@penstock/run';
import { decodeCommit, encodeCommit, LiveRun } from '@penstock/scheduler/testing';
import { expect, it } from 'vitest';
import { COMMIT_FORMAT, encodeEvent } from '../src/run/commit.ts';
import { readAddedText } from '../src/shell/added-texts.ts';
import { definitions, Harness, settings, stage, text } from './support.ts';

const YAML = text(
  [stage('plan', { generates: { secrets: [], audiences: [] } }), stage('deploy', { after: ['plan'] })],
  { generation: { env: {}, extensions: [] } },
);
const TEXT = 'a: {run: x}\nb: {after: a, run: x, matrix: {n: [1, 2]}}';

/** The stage `plan` is granted; its result as a runner sends it. */
function granted(): { readonly world: Harness; readonly id: string; readonly request: ResultRequest } {
  const world = new Harness();
  const { id } = world.create(YAML);
  world.session('r1-s', { credits: 1 });
  world.settle();
  const { runId, stage: name, attempt, session, credit } = world.job(0);
  const request = { runId, stage: name, attempt, session, credit, status: 'success', logBytes: 1 } as const;
  return { world, id, request };
}

/** As the shell does it. */
function tell(world: Harness, request: ResultRequest, given: string | undefined): unknown[] {
  const replies: unknown[] = [];
  const adds = world.partition.addedOptions({ ...request, added: packText(given ?? '') }, 'r1');
  const parsed = given === undefined || adds === undefined ? undefined : parsePipeline(given, adds.options);
  world.partition.result(request, 'r1', (reply) => void replies.push(reply), {
    text: given,
    meaning: parsed?.ok === true ? parsed.definition : undefined,
  });
  return replies;
}

/** The events of the run, as its log has them. */
function journalOf({ appended }: Harness): RunEvent[] {
  return appended.flatMap(({ commit }) => commit.runs.flatMap(({ events }) => events));
}

it('what is completed, what joins and what falls due are one commit, and its text alone is journaled', () => {
  const { world, request } = granted();
  const before = world.appended.length;
  const replies = tell(world, request, TEXT);
  world.settle();
  expect(replies).toMatchObject([{ ok: true, answer: 'committed' }]);
  const [commit] = world.appended.slice(before);
  const events = commit?.commit.runs[0]?.events ?? [];
  expect(events.map(({ type }) => type)).toEqual(['stage_completed', 'stages_added', 'stages_queued']);
  expect(events[1]).toMatchObject({ stage: 'plan', text: TEXT, stages: [] });
  expect(commit?.bytes).toBeLessThan(1_000);
});

it('a successor knows them from the log', async () => {
  const { world, id, request } = granted();
  tell(world, request, TEXT);
  world.settle();
  const events = journalOf(world);
  const { definition } = definitions.find(YAML);
  const read: string[] = [];
  await readAdded(definition, events, async (given, options) => {
    read.push(given);
    return await readAddedText(given, options, 'ada');
  });
  expect(read).toEqual([TEXT]);
  const run = LiveRun.restore(id, definition, { events, sequence: 9 }, settings);
  expect(run.state.stages.map(({ name, status }) => `${name} ${status}`)).toEqual([
    'plan SUCCESS',
    'deploy PENDING',
    'plan/a QUEUED',
    'plan/b (n=1) PENDING',
    'plan/b (n=2) PENDING',
  ]);
  expect(run.events.find(({ type }) => type === 'stages_added')).toMatchObject({
    stages: ['plan/a', 'plan/b (n=1)', 'plan/b (n=2)'],
  });
  // Whoever has other runs of the same file has none of them.
  expect(planOf(definition).stages).toHaveLength(2);
});

it('a text that means nothing to a later build leaves the run with the stages that its events name', async () => {
  const { world, id, request } = granted();
  tell(world, request, TEXT);
  world.settle();
  const events = journalOf(world).map((event) => (event.type === 'stages_added' ? { ...event, text: 'a: 1' } : event));
  const { definition } = definitions.find(YAML);
  await expect(readAdded(definition, events, (...asked) => readAddedText(...asked, 'ada'))).rejects.toThrow(NotAdded);
  const run = LiveRun.unrestorable(id, { events, sequence: 9 }, settings, 'not restored');
  expect(run.state.stages.map(({ name }) => name)).toEqual(['plan', 'plan/a']);
});

it.each([
  ['that is refused', 'a: {after: nobody, run: x}'],
  ['that could not be unpacked', undefined],
])('a text %s fails its stage, whatever its runner has said', (_, given) => {
  const { world, request } = granted();
  tell(world, request, given);
  world.settle();
  expect(journalOf(world)).toContainEqual(
    expect.objectContaining({ type: 'stage_completed', stage: 'plan', status: 'FAILED', reason: 'pipeline_file' }),
  );
  expect(journalOf(world).at(-1)).toMatchObject({ type: 'run_completed', status: 'FAILED' });
});

it('a result of an attempt that lives no more is read for nobody', () => {
  const { world, request } = granted();
  expect(world.partition.addedOptions({ ...request, attempt: 2, added: packText(TEXT) }, 'r1')).toBeUndefined();
  expect(world.partition.addedOptions({ ...request, added: packText(TEXT) }, 'another')).toBeUndefined();
  expect(world.partition.addedOptions({ ...request, status: 'failed', added: packText(TEXT) }, 'r1')).toBeUndefined();
  expect(world.partition.addedOptions({ ...request, added: packText(TEXT) }, 'r1')?.key).toBe('ada');
});

it('a compressed text is never unpacked beyond its bound', () => {
  const max = PIPELINE_LIMITS.addedTextBytesMax;
  expect(unpackText(packText('x'.repeat(max)), max)).toHaveLength(max);
  expect(unpackText(packText('x'.repeat(max + 1)), max)).toBeUndefined();
  expect(unpackText(deflateRawSync(Buffer.alloc(512 * 1024 * 1024)).toString('base64'), max)).toBeUndefined();
  for (const bad of ['', 'no base64', 7, undefined, deflateRawSync(Buffer.of(0xff)).toString('base64')])
    expect(unpackText(bad, max)).toBeUndefined();
});

it('a commit holds the text deflated, and gives it back', () => {
  const long = Array.from({ length: 2_000 }, (_, index) => `s${index}: {run: make test}`).join('\n');
  const event: RunEvent = { type: 'stages_added', at: 5, stage: 'plan', text: long, bytes: 9, stages: ['plan/s0'] };
  const encoded = encodeEvent(event);
  expect(encoded.length).toBeLessThan(long.length / 3);
  const head = { id: 'c', kind: 'runs', partition: 0, epoch: 1, number: 1, owner: 'me', minReader: 4, at: 5 } as const;
  expect(COMMIT_FORMAT).toBeGreaterThanOrEqual(head.minReader);
  const commit = decodeCommit(encodeCommit(head, [{ id: 'r', from: 1, events: [encoded] }]));
  expect(commit.runs[0]?.events).toEqual([{ ...event, stages: [] }]);
});

it('what costs long to read is read by another thread', async () => {
  const { world, request } = granted();
  const adds = world.partition.addedOptions({ ...request, added: packText(TEXT) }, 'r1');
  if (adds === undefined) throw new Error('nobody waits for it');
  const numbers = Array.from({ length: 250 }, (_, index) => index).join(', ');
  const costly = `a: {run: x, matrix: {n: [${numbers}]}}`;
  const parsed = await readAddedText(costly, adds.options, 'ada');
  if (!parsed.ok) throw new Error(parsed.diagnostics.map(diagnosticLine).join('\n'));
  expect(parsed.definition.stages[249]?.name).toBe('plan/a (n=249)');
}, 60_000);
