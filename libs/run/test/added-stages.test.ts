import { parsePipeline, type PipelineDefinition } from '@penstock/pipeline';
import {
  addedTextOptions,
  evolve,
  eventViewOf,
  newRun,
  NotAdded,
  planOf,
  publicEventsOf,
  readAdded,
  viewAt,
  viewOf,
  workOf,
  type RunEvent,
} from '@penstock/run';
import { describe, expect, it } from 'vitest';
import { DrivenRun, RUN_ID, stage, types } from './support.ts';

const CEILING = { secrets: [], audiences: [] };

function generating(...stages: PipelineDefinition['stages']): PipelineDefinition {
  return { name: 'ship', schedule: [], stages, generation: { env: {}, extensions: [] } };
}

const PLAN = stage('plan', { generates: CEILING });
const TWO = 'a: {run: x}\nb: {after: a, run: x}';

/** The stage succeeds and adds what the text means. */
function add(driven: DrivenRun, name: string, text: string, more: { bytes?: number; fileBytes?: number } = {}) {
  const parsed = parsePipeline(text, addedTextOptions(driven.run.stages.plan, name) ?? {});
  return driven.tell({
    type: 'result',
    stage: name,
    attempt: driven.stage(name).attempt,
    status: 'success',
    logBytes: 0,
    added: { text, bytes: 100, fileBytes: 100, ...more, meaning: parsed.ok ? parsed.definition : undefined },
  });
}

function started(...stages: PipelineDefinition['stages']): DrivenRun {
  const driven = new DrivenRun(generating(...stages));
  driven.grant('plan');
  return driven;
}

describe('stages that a stage adds (P29)', () => {
  it('join, and fall due, in the commit that ends it', () => {
    const driven = started(PLAN, stage('deploy', { after: ['plan'] }));
    expect(types(add(driven, 'plan', TWO))).toEqual(['stage_completed', 'stages_added', 'stages_queued']);
    expect(driven.statuses()).toEqual({ plan: 'SUCCESS', deploy: 'PENDING', 'plan/a': 'QUEUED', 'plan/b': 'PENDING' });
    expect(driven.run.openStages).toBe(3);
    expect(viewOf(driven.run).stages.map(({ name, after }) => [name, after])).toEqual([
      ['plan', []],
      ['deploy', ['plan']],
      ['plan/a', ['plan']],
      ['plan/b', ['plan/a']],
    ]);
  });

  it('mean in another run what its own plan makes of them, though the event is the same one', () => {
    const driven = started(PLAN);
    add(driven, 'plan', TWO);
    const added = driven.events.find(({ type }) => type === 'stages_added');
    const elsewhere = new DrivenRun(generating(PLAN, stage('deploy', { after: ['plan'] })));
    elsewhere.grant('plan');
    const completed = { type: 'stage_completed', at: 0, stage: 'plan', attempt: 1, status: 'SUCCESS', logBytes: 0 };
    const state = elsewhere.run;
    evolve(state, completed as RunEvent);
    evolve(state, added as RunEvent);
    expect(viewOf(state).stages.map(({ name }) => name)).toEqual(['plan', 'deploy', 'plan/a', 'plan/b']);
  });

  it('are waited for by what comes after the stage that has added them', () => {
    const driven = started(PLAN, stage('deploy', { after: ['plan'] }));
    add(driven, 'plan', TWO);
    for (const name of ['plan/a', 'plan/b']) {
      expect(driven.stage('deploy').status).toBe('PENDING');
      driven.grant(name);
      driven.succeed(name);
    }
    expect(driven.queued()).toEqual(['deploy']);
    driven.grant('deploy');
    driven.succeed('deploy');
    expect(driven.run.status).toBe('SUCCESS');
  });

  it('fail what comes after it as they fail, and their run', () => {
    const driven = started(PLAN, stage('deploy', { after: ['plan'] }));
    add(driven, 'plan', TWO);
    driven.grant('plan/a');
    driven.fail('plan/a');
    expect(driven.statuses()).toEqual({ plan: 'SUCCESS', deploy: 'SKIPPED', 'plan/a': 'FAILED', 'plan/b': 'SKIPPED' });
    expect(driven.run.status).toBe('FAILED');
  });

  it('of stages that were added are waited for from outside as well', () => {
    const driven = started(PLAN, stage('deploy', { after: ['plan'] }));
    add(driven, 'plan', 'more: {run: x, generates: true}');
    driven.grant('plan/more');
    add(driven, 'plan/more', 'last: {run: x}');
    expect(driven.stage('deploy').status).toBe('PENDING');
    driven.grant('plan/more/last');
    driven.succeed('plan/more/last');
    expect(driven.queued()).toEqual(['deploy']);
    expect(driven.run.stages.plan.stages.map(({ depth }) => depth)).toEqual([0, 0, 1, 2]);
  });

  it('none: nothing is added', () => {
    const driven = started(PLAN, stage('deploy', { after: ['plan'] }));
    expect(types(add(driven, 'plan', '{}'))).toEqual(['stage_completed', 'stages_queued']);
    expect(driven.run.stages.length).toBe(2);
  });

  it('of a stage that says nothing of it are not looked at', () => {
    const driven = started(stage('plan'));
    expect(types(add(driven, 'plan', TWO))).toEqual(['stage_completed', 'run_completed']);
  });

  it.each([
    ['a text that means nothing', 'a: {after: b, run: x}', {}, 'pipeline_file'],
    ['texts of more than 768 KiB', TWO, { bytes: 700 * 1024, fileBytes: 100 * 1024 }, 'quota'],
    [
      'more stages than a run may have',
      'a: {run: x, matrix: &m {n: [N]}}\nb: {run: x, matrix: *m}\nc: {run: x, matrix: *m}\nd: {run: x, matrix: *m}',
      {},
      'quota',
    ],
  ] as const)('%s fails the stage that adds them', (_, text, more, reason) => {
    const others = Array.from({ length: 999 }, (__, index) => stage(`s${index}`));
    const driven = started(PLAN, ...others, stage('deploy', { after: ['plan'] }));
    const numbers = Array.from({ length: 255 }, (__, index) => index).join(', ');
    expect(types(add(driven, 'plan', text.replace('N', numbers), more))).not.toContain('stages_added');
    expect(driven.stage('plan')).toMatchObject({ status: 'FAILED', reason });
    expect(driven.stage('deploy').status).toBe('SKIPPED');
  });

  it('never have the name of a stage that is there', () => {
    const driven = started(PLAN, stage('plan/a'));
    add(driven, 'plan', TWO);
    expect(driven.stage('plan')).toMatchObject({ status: 'FAILED', reason: 'pipeline_file' });
  });

  it('count those of the attempt alone that has succeeded', () => {
    const driven = started(stage('plan', { generates: CEILING, retry: { ...PLAN.retry, max: 1 } }));
    driven.fail('plan');
    driven.tell({ type: 'wake', at: driven.at + 60_000 });
    driven.grant('plan');
    add(driven, 'plan', 'second: {run: x}');
    expect(Object.keys(driven.statuses())).toEqual(['plan', 'plan/second']);
  });

  it('are cancelled with their run, and add nothing to one that has ended', () => {
    const driven = started(PLAN, stage('other', { generates: CEILING }));
    driven.grant('other');
    add(driven, 'plan', TWO);
    driven.tell({ type: 'cancel' });
    expect(driven.statuses()).toMatchObject({ 'plan/a': 'CANCELLED', 'plan/b': 'CANCELLED' });
    expect(types(add(driven, 'other', TWO))).toEqual(['attempt_gone', 'run_stopped']);
  });

  it('may be gates', () => {
    const driven = started(PLAN);
    add(driven, 'plan', 'ask: {approval: {}}\ngo: {after: ask, run: x}');
    expect(driven.run.rested).toBe(true);
    driven.tell({ type: 'decide-gate', stage: 'plan/ask', person: 'p', by: 'p', decision: 'approved' });
    driven.tell({ type: 'admit' });
    expect(driven.queued()).toEqual(['plan/go']);
  });

  it('read each other, and find the files of what comes before them', () => {
    const kept = { manifest: 'f'.repeat(64), files: 1, bytes: 1, expiresAt: 9 };
    const artifacts = { paths: ['out'], when: 'success', required: true } as const;
    const driven = started(stage('plan', { generates: CEILING, artifacts }));
    const text = 'a: {run: x, outputs: [v]}\nb: {after: a, run: "echo ${{ stages.a.outputs.v }}"}';
    const parsed = parsePipeline(text, addedTextOptions(driven.run.stages.plan, 'plan') ?? {});
    driven.tell({
      ...{ type: 'result', stage: 'plan', attempt: 1, status: 'success', logBytes: 0, artifacts: kept },
      added: { text, bytes: 9, fileBytes: 9, meaning: parsed.ok ? parsed.definition : undefined },
    });
    driven.grant('plan/a');
    driven.succeed('plan/a', { v: 'seen' });
    driven.grant('plan/b');
    const work = workOf(driven.run, driven.run.stages.plan, 'plan/b');
    expect(Object.values(work.commands[0]?.bindings ?? {})).toEqual(['seen']);
    expect(work.inherits?.map(({ stage: name }) => name)).toEqual(['plan']);
  });

  it('stand in the job of the stage with what they are read with', () => {
    const driven = started(stage('plan', { generates: { secrets: ['A'], audiences: [] } }));
    expect(workOf(driven.run, driven.run.stages.plan, 'plan').generates).toEqual({
      extensions: [],
      added: { stage: 'plan', depth: 1, ceiling: { secrets: ['A'], audiences: [] }, env: {}, inputs: [] },
    });
  });
});

describe('a run with added stages, from its events', () => {
  function finished(): DrivenRun {
    const driven = started(PLAN, stage('deploy', { after: ['plan'] }));
    add(driven, 'plan', 'more: {run: x, generates: true}\nb: {after: more, run: x}');
    driven.grant('plan/more');
    add(driven, 'plan/more', TWO);
    for (const name of ['plan/more/a', 'plan/more/b', 'plan/b', 'deploy']) {
      driven.grant(name);
      driven.succeed(name);
    }
    return driven;
  }

  /** As the journal has them. */
  function journaled(events: readonly RunEvent[]): RunEvent[] {
    return (JSON.parse(JSON.stringify(events)) as RunEvent[]).map((event) =>
      event.type === 'stages_added' ? { ...event, stages: [] } : event,
    );
  }

  it('is the same, whoever folds them', async () => {
    const driven = finished();
    expect(driven.run.status).toBe('SUCCESS');
    const events = journaled(driven.events);
    const [created, ...rest] = events;
    if (created?.type !== 'run_created') throw new Error('no beginning');
    const folded = newRun(RUN_ID, created, planOf(driven.definition));
    for (const event of rest) evolve(folded, event);
    expect(JSON.parse(JSON.stringify(folded))).toEqual(JSON.parse(JSON.stringify(driven.run)));
    const read: string[] = [];
    const again = journaled(driven.events);
    await readAdded(driven.definition, again, async (text, options) => {
      read.push(options.added?.stage ?? '');
      return parsePipeline(text, options);
    });
    expect(read).toEqual(['plan', 'plan/more']);
    expect(viewAt(RUN_ID, driven.definition, again, again.length)).toEqual(viewOf(driven.run));
  });

  it('has at each version the stages that it had then', () => {
    const { definition, events } = finished();
    const at = events.findIndex(({ type }) => type === 'stages_added');
    const names = (version: number): number => viewAt(RUN_ID, definition, events, version).stages.length;
    expect([names(at), names(at + 1), names(events.length)]).toEqual([2, 4, 6]);
  });

  it('tells its watchers of them', () => {
    const event = finished().events.find(({ type }) => type === 'stages_added');
    expect(event && publicEventsOf(event, () => ({ text: '', truncated: false }))).toEqual([
      { type: 'stages_added', stage: 'plan', stages: ['plan/more', 'plan/b'], timestamp: expect.any(String) },
    ]);
  });

  it('shows their text to those alone whose run it is', () => {
    const event = finished().events.find(({ type }) => type === 'stages_added') as RunEvent;
    expect(JSON.parse(eventViewOf(6, event, true).data)).toMatchObject({ text: expect.stringContaining('more:') });
    const { data, summary } = eventViewOf(6, event, false);
    expect(JSON.parse(data)).not.toHaveProperty('text');
    expect(summary).toBe("'plan' added 2 stages: 'plan/more', 'plan/b'");
  });

  it('are restored from a text that was good before a rule came', async () => {
    const added = started(PLAN);
    add(added, 'plan', TWO);
    const upTo = added.events.findIndex(({ type }) => type === 'stages_added') + 1;
    const events = (): RunEvent[] =>
      journaled(added.events.slice(0, upTo)).map((event) =>
        event.type === 'stages_added' ? { ...event, text: "'.': {run: x, artifacts: dist/**}" } : event,
      );
    const { definition } = added;
    const names = (of: readonly RunEvent[]): string[] =>
      viewAt(RUN_ID, definition, of, of.length).stages.map(({ name }) => name);
    expect(names(events())).toEqual(['plan', 'plan/.']);
    const read = events();
    await readAdded(definition, read, async (...asked) => parsePipeline(...asked));
    expect(names(read)).toEqual(['plan', 'plan/.']);
  });

  it('cannot be restored from a text that means nothing', async () => {
    const { definition, events } = finished();
    const broken = journaled(events).map((event) =>
      event.type === 'stages_added' ? { ...event, text: 'a: 1' } : event,
    );
    await expect(readAdded(definition, broken, async (...asked) => parsePipeline(...asked))).rejects.toThrow(NotAdded);
    expect(() => viewAt(RUN_ID, definition, broken, broken.length)).toThrow(NotAdded);
  });
});
