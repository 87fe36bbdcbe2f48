/** Sound accounts of gates, repeats, added stages and schedules have no violation, and each kind of wrong is seen. */
import type { RunEvent } from '@penstock/run';
import type { Commit } from '@penstock/scheduler/testing';
import { describe, expect, it } from 'vitest';
import type { JournaledRun } from '../journal.ts';
import type { LoadAccount } from '../load-account.ts';
import type { Mark } from '../marks.ts';
import { addedBy, type ChaosPipeline, type ChaosStage } from '../pipelines.ts';
import type { ViolationKind } from '../violations.ts';
import type { GateAnswer, Rerun } from '../steered.ts';
import { checkAdded, stagesOf } from './added-stages.ts';
import { beganBefore, checkGate } from './gate-checks.ts';
import { checkRerun, type LineageEvidence } from './lineage-checks.ts';
import { checkPictures, checkRefused } from './looks.ts';
import { checkTicks } from './tick-checks.ts';
import { MINUTE_MS } from './tick-load.ts';

type Found = (report: (kind: ViolationKind, detail: string) => void) => void;

function kindsOf(found: Found): ViolationKind[] {
  const kinds = new Set<ViolationKind>();
  found((kind) => void kinds.add(kind));
  return [...kinds];
}

const stage = (name: string, more: Partial<ChaosStage> = {}): ChaosStage => ({
  name,
  after: [],
  lines: 0,
  retriesLost: false,
  ...more,
});
const completed = (name: string, at: number, more: object = {}): RunEvent =>
  ({ type: 'stage_completed', at, stage: name, attempt: 1, status: 'SUCCESS', logBytes: 0, ...more }) as RunEvent;
const started = (name: string, at: number): RunEvent => ({
  type: 'stage_started',
  at,
  stage: name,
  attempt: 1,
  runner: 'r',
  session: 's',
  credit: 1,
});

describe('what is said at a gate', () => {
  const decided = (person: string, decision: 'approved' | 'rejected', at = 2_000): RunEvent => ({
    type: 'gate_decided',
    at,
    stage: 'gate',
    person,
    by: person,
    decision,
    approved: 1,
    quorum: 1,
  });
  const queued: RunEvent = { type: 'gates_queued', at: 1_000, stages: ['gate'], dueAt: 5_000 };
  const ended = (status: string, reason?: string, at = 2_000): RunEvent =>
    completed('gate', at, { status, attempt: 0, ...(reason === undefined ? {} : { reason }) });
  const said = (
    person: string,
    decision: GateAnswer['decision'],
    outcome: GateAnswer['outcome'] = 'taken',
    more: Partial<GateAnswer> = {},
  ): GateAnswer => ({ runId: 'run', stage: 'gate', person, decision, sends: 1, outcome, ...more });
  const gate = stage('gate', { gate: { quorum: 1, named: true, timeoutSecs: 4 } });
  const found = (events: readonly RunEvent[], answers: readonly GateAnswer[], of = gate): ViolationKind[] =>
    kindsOf((report) => checkGate(of, { events, marks: new Map(), answers, clocksStepped: false }, report));

  it('is sound where it was approved, rejected, decided by the first of two, or ran out of time', () => {
    expect(found([queued, decided('a', 'approved'), ended('SUCCESS')], [said('a', 'approved')])).toEqual([]);
    expect(found([queued, decided('a', 'rejected'), ended('FAILED', 'rejected')], [said('a', 'rejected')])).toEqual([]);
    expect(
      found(
        [queued, decided('a', 'approved'), ended('SUCCESS')],
        [said('a', 'approved'), said('b', 'rejected', 'refused'), said('a', 'approved', 'unknown')],
      ),
    ).toEqual([]);
    expect(found([queued, ended('FAILED', 'timeout', 5_000)], [said('a', 'approved', 'refused')])).toEqual([]);
  });

  const sound = [queued, decided('a', 'approved'), ended('SUCCESS')];
  const wrongs: readonly (readonly [string, ViolationKind, readonly RunEvent[], readonly GateAnswer[]])[] = [
    ['an answer that is nowhere', 'lost', [queued, ended('FAILED', 'timeout', 5_000)], [said('a', 'approved')]],
    ['two people who decided', 'lost', sound, [said('a', 'approved'), said('b', 'rejected')]],
    ['a decision of nobody', 'untrue', sound, []],
    [
      'a person who decided twice',
      'doubled',
      [queued, decided('a', 'approved'), ...sound.slice(1)],
      [said('a', 'approved')],
    ],
    ['a second end', 'doubled', [...sound, ended('SUCCESS')], [said('a', 'approved')]],
    [
      'a decision after the end',
      'late',
      [...sound, decided('b', 'rejected')],
      [said('a', 'approved'), said('b', 'rejected')],
    ],
    ['an approval without anybody', 'untrue', [queued, ended('SUCCESS')], []],
    ['a rejection of nobody', 'untrue', [queued, ended('FAILED', 'rejected')], []],
    ['an end before its time', 'untrue', [queued, ended('FAILED', 'timeout')], []],
    [
      'an end out of time, though it was decided',
      'untrue',
      [queued, decided('a', 'approved'), ended('FAILED', 'timeout', 5_000)],
      [said('a', 'approved')],
    ],
    ['a refusal of what counts', 'answer', sound, [said('a', 'approved', 'refused')]],
    [
      'an end that was shown and is another',
      'answer',
      [queued, decided('a', 'approved'), decided('b', 'rejected'), ended('FAILED', 'rejected')],
      [said('a', 'approved', 'taken', { status: 'SUCCESS' }), said('b', 'rejected')],
    ],
    ['a gate that ran', 'doubled', [started('gate', 1_000), ...sound], [said('a', 'approved')]],
  ];
  it.each(wrongs)('is not with %s', (_what, kind, events, answers) => {
    expect(found(events, answers)).toContain(kind);
  });

  it('needs the quorum', () => {
    const two = stage('gate', { gate: { quorum: 2, named: true, timeoutSecs: 4 } });
    expect(found(sound, [said('a', 'approved')], two)).toContain('untrue');
    const both = [queued, decided('a', 'approved'), decided('b', 'approved'), ended('SUCCESS')];
    expect(found(both, [said('a', 'approved'), said('b', 'approved')], two)).toEqual([]);
  });

  it('is waited for by what comes after it', () => {
    const evidence = { events: sound, clocksStepped: false };
    expect(beganBefore(gate, 2_100, evidence)).toBe(false);
    expect(beganBefore(gate, 1_900, evidence)).toBe(true);
    expect(beganBefore(gate, 2_100, { ...evidence, events: [queued, ended('FAILED', 'rejected')] })).toBe(true);
  });
});

describe('stages that a stage has added', () => {
  const plan = stage('plan', { adds: 2 });
  const pipeline: ChaosPipeline = {
    name: 'p',
    yaml: '',
    grouped: false,
    stages: [plan, stage('then', { after: ['plan'] })],
  };
  const added: RunEvent = { type: 'stages_added', at: 2_000, stage: 'plan', text: '', bytes: 0, stages: [] };
  const run: JournaledRun = {
    id: 'run',
    partition: 0,
    events: [started('plan', 1_000), completed('plan', 2_000), added],
  };
  const names = addedBy(plan, 1).map(({ name }) => name);
  const found = (events: readonly RunEvent[], executed: readonly string[]): ViolationKind[] => {
    const stages = stagesOf({ ...run, events: [...events] }, pipeline, new Map());
    return kindsOf((report) => checkAdded(events, stages, new Set(executed), report));
  };

  it('are those of the attempt that succeeded, and what comes after that waits for them', () => {
    expect(found(run.events, ['plan', ...names, 'then'])).toEqual([]);
    const then = stagesOf(run, pipeline, new Map()).find(({ name }) => name === 'then');
    expect(then?.after).toEqual(['plan', ...names]);
  });

  it('are those that its parent has, in a run that has taken it over', () => {
    const events: RunEvent[] = [
      { type: 'run_created', lineage: { parent: 'run' } } as unknown as RunEvent,
      { type: 'stages_adopted', at: 3_000, adopted: [{ stage: 'plan' }] },
      added,
    ];
    const stages = stagesOf({ id: 'again', partition: 0, events }, pipeline, new Map([['run', run]]));
    expect(stages.map(({ name }) => name)).toEqual(['plan', 'then', ...names]);
  });

  it('of another attempt, without a success, twice or never are seen', () => {
    expect(found(run.events, [addedBy(plan, 2)[0]?.name ?? ''])).toContain('doubled');
    expect(found([...run.events, added], [])).toContain('doubled');
    expect(found(run.events.slice(0, 2), [])).toContain('lost');
    expect(found([added], [])).toContain('untrue');
  });
});

describe('a run that repeats another', () => {
  const pipeline: ChaosPipeline = {
    name: 'p',
    yaml: '',
    grouped: false,
    stages: [
      stage('a'),
      stage('gate', { after: ['a'], gate: { quorum: 1, named: true, timeoutSecs: 4 } }),
      stage('b', { after: ['gate'] }),
    ],
  };
  const parent: JournaledRun = {
    id: 'parent',
    partition: 0,
    events: [
      { type: 'run_created' } as unknown as RunEvent,
      completed('a', 1_000, { outputs: { made: 'parent.1' } }),
      completed('gate', 2_000, { attempt: 0 }),
      completed('b', 3_000, { status: 'FAILED' }),
    ],
  };
  const created = (more: object = {}): RunEvent =>
    ({
      type: 'run_created',
      lineage: { parent: 'parent', root: 'parent', version: 4, ...more },
    }) as unknown as RunEvent;
  const adopted = (name: string, outputs?: Readonly<Record<string, string>>): RunEvent => ({
    type: 'stages_adopted',
    at: 4_000,
    adopted: [{ stage: name, ...(outputs === undefined ? {} : { outputs }) }],
  });
  const a = adopted('a', { made: 'parent.1' });
  const sound = [created(), a, started('b', 5_000)];
  const rerun: Rerun = { parent: 'parent', wish: { from: ['b'] } };
  const found = (
    events: readonly RunEvent[],
    {
      wish = rerun.wish,
      marks = new Map(),
      shown = new Map(),
    }: Partial<LineageEvidence> & { readonly wish?: Rerun['wish'] } = {},
  ): ViolationKind[] => {
    const evidence = { runs: new Map([['parent', parent]]), marks, shown };
    const run: JournaledRun = { id: 'again', partition: 0, events: [...events] };
    return kindsOf((report) => checkRerun(run, { parent: 'parent', wish }, pipeline, evidence, report));
  };

  it('takes over what has succeeded before the stage that it begins from, and asks the gate again', () => {
    expect(found(sound)).toEqual([]);
    expect(found(sound, { wish: { onlyFailed: true } })).toEqual([]);
    expect(found([created(), started('a', 5_000)], { wish: {} })).toEqual([]);
    expect(found([created({ edited: true }), started('a', 5_000)], { wish: { from: ['b'], edited: 'a' } })).toEqual([]);
  });

  const mark: Mark = { kind: 'start', attempt: 1, at: 5_000 };
  const wrongs: readonly (readonly [
    string,
    ViolationKind,
    readonly RunEvent[],
    (Partial<LineageEvidence> & { readonly wish?: Rerun['wish'] })?,
  ])[] = [
    ['another parent', 'untrue', [created({ parent: 'other' }), ...sound.slice(1)]],
    ['another root', 'untrue', [created({ root: 'other' }), ...sound.slice(1)]],
    ['no lineage', 'untrue', [{ type: 'run_created' } as unknown as RunEvent]],
    ['a stage that was to run again', 'untrue', [created(), a, adopted('b'), started('c', 5_000)]],
    ['a gate that was not asked again', 'untrue', [created(), a, adopted('gate'), started('b', 5_000)]],
    ['a stage that it has not taken over', 'untrue', [created(), started('a', 5_000)]],
    ['a stage that had not succeeded by then', 'untrue', [created({ version: 1 }), a, started('b', 5_000)]],
    ['other outputs', 'untrue', [created(), adopted('a', { made: 'other.1' }), started('b', 5_000)]],
    ['a stage taken over twice', 'doubled', [created(), a, a, started('b', 5_000)]],
    ['a stage taken over that ran', 'doubled', [...sound, started('a', 5_000)]],
    ['one that left marks', 'doubled', sound, { marks: new Map([['a', [mark]]]) }],
    ['something taken over after a start', 'order', [created(), started('b', 5_000), a]],
    [
      'an edited file of which it says nothing',
      'untrue',
      [created(), started('a', 5_000)],
      { wish: { from: ['b'], edited: 'a' } },
    ],
    ['another input', 'untrue', sound, { wish: { from: ['b'], inputs: [{ key: 'version', value: 'two' }] } }],
    [
      'a parent that does not show it',
      'answer',
      sound,
      { shown: new Map([['parent', { parentRunId: null, rootRunId: null, children: [] }]]) },
    ],
    ['a lineage that is shown as another', 'answer', sound, { shown: new Map([['again', null]]) }],
  ];
  it.each(wrongs.map(([what, kind, events, more]) => ({ what, kind, events, more })))(
    'is seen with $what',
    ({ kind, events, more }) => {
      expect(found(events, more)).toContain(kind);
    },
  );

  const account = (more: Partial<LoadAccount>): LoadAccount => ({
    accepted: [],
    unanswered: [],
    watched: [],
    broken: [],
    reads: 0,
    cancels: 0,
    ...more,
  });

  it('leaves its parent as it was', () => {
    const load = account({ reruns: { refused: [], pictures: new Map([['parent', 'before']]) } });
    const looked = (text: string | null): ViolationKind[] =>
      kindsOf((report) =>
        checkPictures(load, { pictures: new Map([['parent', text]]), lineages: new Map() }, (kind, _, detail) =>
          report(kind, detail),
        ),
      );
    expect(looked('before')).toEqual([]);
    expect(looked('after')).toEqual(['untrue']);
    expect(looked(null)).toEqual(['untrue']);
  });

  it('is refused only where nothing is left to run', () => {
    const refused = (wish: Rerun['wish'], events: readonly RunEvent[]): ViolationKind[] => {
      const accepted = [{ id: 'parent', pipeline, acceptedAt: 0 }];
      const load = account({ accepted, reruns: { refused: [{ parent: 'parent', wish }], pictures: new Map() } });
      const runs = new Map([['parent', { ...parent, events: [...events] }]]);
      return kindsOf((report) => checkRefused(load, runs, (kind, _, detail) => report(kind, detail)));
    };
    const all = [...parent.events.slice(0, 3), completed('b', 3_000)];
    expect(refused({ onlyFailed: true }, all)).toEqual([]);
    expect(refused({ onlyFailed: true }, parent.events)).toEqual(['answer']);
    expect(refused({ from: ['b'] }, all)).toEqual(['answer']);
  });
});

describe('times of a schedule', () => {
  const REPOSITORY = 'acme/minutely';
  const runOf = (id: string, minute: number, { missed = 0, commit = 'c1' } = {}): JournaledRun => ({
    id,
    partition: 0,
    events: [
      {
        type: 'run_created',
        origin: {
          kind: 'schedule',
          repository: REPOSITORY,
          commit,
          tick: { cron: '* * * * *', at: minute * MINUTE_MS, missed },
        },
      } as unknown as RunEvent,
      { type: 'run_completed', at: 0, status: 'SUCCESS' },
    ],
  });
  const firedIn = (run: JournaledRun, withRun = true): Commit => {
    const [first] = run.events;
    const tick = first?.type === 'run_created' ? (first.origin.tick?.at ?? 0) : 0;
    const fired = { type: 'tick_fired', at: 0, line: 'line', tick, runId: run.id };
    const runs = withRun ? [{ id: run.id, from: 1, events: [] }] : [];
    return { runs, schedules: [{ id: 's', events: [fired] }] } as unknown as Commit;
  };
  const found = (runs: readonly JournaledRun[], commits = runs.map((run) => firedIn(run))): ViolationKind[] => {
    const lines = new Map([[REPOSITORY, { commits: ['c1', 'c2'], from: 0.5 * MINUTE_MS, until: 3.5 * MINUTE_MS }]]);
    const evidence = {
      account: { lines },
      runs: new Map(runs.map((run) => [run.id, run])),
      commits,
      clocksStepped: false,
    };
    return kindsOf((report) => checkTicks(evidence, (kind, _, detail) => report(kind, detail)));
  };
  const [one, two, three] = [runOf('one', 1), runOf('two', 2, { commit: 'c2' }), runOf('three', 3)];

  it('are each fired, or missed by the next that is', () => {
    expect(found([one, two, three])).toEqual([]);
    expect(found([one, runOf('three', 3, { missed: 1 })])).toEqual([]);
  });

  const wrongs: readonly (readonly [string, ViolationKind, readonly JournaledRun[], Commit[]?])[] = [
    ['lost in silence', 'lost', [one, three]],
    ['lost at the end', 'lost', [one, two]],
    ['run twice', 'doubled', [one, two, runOf('again', 2), three]],
    ['fired and told as missed', 'untrue', [one, two, runOf('three', 3, { missed: 1 })]],
    ['of a commit that nobody has pushed', 'untrue', [one, runOf('two', 2, { commit: 'c9' }), three]],
    ['between two minutes', 'untrue', [one, two, three, runOf('half', 3.5)]],
    ['with a run that never ended', 'unfinished', [one, two, { ...three, events: three.events.slice(0, 1) }]],
    ['not fired with their run', 'journal', [one, two, three], [firedIn(one), firedIn(two), firedIn(three, false)]],
  ];
  it.each(wrongs.map(([what, kind, runs, commits]) => ({ what, kind, runs, commits })))(
    'are seen when they are $what',
    ({ kind, runs, commits }) => {
      expect(found(runs, commits)).toContain(kind);
    },
  );
});
