/** The checker finds what it is there to find: sound evidence has no violation, and each kind of wrong is seen. */
import type { RunEvent } from '@penstock/run';
import { decodeCommit } from '@penstock/scheduler/testing';
import { describe, expect, it } from 'vitest';
import type { StreamEvent } from '../support/sse.ts';
import { check, type Evidence } from './checker.ts';
import { Journal, type JournaledRun } from './journal.ts';
import { wentBack } from './load.ts';
import type { AcceptedRun } from './load-account.ts';
import { parseMarks, type Mark } from './marks.ts';
import type { ChaosPipeline } from './pipelines.ts';
import { checkStream } from './stream-checks.ts';
import type { ViolationKind } from './violations.ts';
import type { Watched } from './watcher.ts';

const ID = '01a1fe8b-4b7f-7669-960f-9ed2b096f43f';
const pipeline: ChaosPipeline = {
  name: 'p',
  grouped: false,
  yaml: 'pipeline:\n  name: p\nstages:\n  a:\n    run: x\n    retry: { max: 3, on: [lost] }\n  b:\n    after: a\n    run: x\n',
  stages: [
    { name: 'a', after: [], lines: 2, retriesLost: true },
    { name: 'b', after: ['a'], lines: 0, retriesLost: false },
  ],
};
const started = (stage: string, attempt: number, at: number): RunEvent => ({
  type: 'stage_started',
  at,
  stage,
  attempt,
  runner: 'r',
  session: 's',
  credit: attempt,
});
const completed = (stage: string, attempt: number, at: number): RunEvent => ({
  type: 'stage_completed',
  at,
  stage,
  attempt,
  status: 'SUCCESS',
  exitCode: 0,
  logBytes: 0,
});
const lost: RunEvent = {
  type: 'stage_retrying',
  at: 3_000,
  stage: 'a',
  attempt: 1,
  reason: 'runner_lost',
  logBytes: 0,
  dueAt: 4_000,
};

/** Attempt 1 of `a` is lost, attempt 2 succeeds, then `b`. */
const EVENTS: readonly RunEvent[] = [
  {
    type: 'run_created',
    at: 1_000,
    tenant: 'service',
    key: 'service/p',
    pipelineName: 'p',
    yaml: pipeline.yaml,
    priority: 0,
    origin: { kind: 'api' },
  },
  { type: 'stages_queued', at: 1_000, stages: ['a'] },
  started('a', 1, 1_100),
  lost,
  { type: 'stages_queued', at: 4_000, stages: ['a'] },
  started('a', 2, 4_100),
  completed('a', 2, 5_000),
  { type: 'stages_queued', at: 5_000, stages: ['b'] },
  started('b', 1, 5_000),
  completed('b', 1, 6_000),
  { type: 'run_completed', at: 6_000, status: 'SUCCESS' },
];
const mark = (kind: Mark['kind'], attempt: number, at: number): Mark => ({ kind, attempt, at });
const MARKS: Readonly<Record<string, readonly Mark[]>> = {
  a: [mark('start', 1, 1_200), mark('tick', 1, 2_000), mark('start', 2, 4_200), mark('end', 2, 4_900)],
  b: [mark('start', 1, 5_100), mark('end', 1, 5_900)],
};
const emitted = (event: string, data: Record<string, unknown>): StreamEvent => ({
  id: '',
  event,
  data: { type: event, ...data },
});
const REPLAY: readonly StreamEvent[] = [
  emitted('stage_log', { stage: 'a', stream: 'stdout', line: 'line 2 1' }),
  emitted('stage_log', { stage: 'a', stream: 'stdout', line: 'line 2 2' }),
  emitted('pipeline_completed', { status: 'SUCCESS' }),
];

interface Changes {
  readonly events?: readonly RunEvent[];
  readonly marks?: Readonly<Record<string, readonly Mark[]>>;
  readonly run?: Partial<AcceptedRun>;
  readonly replay?: readonly StreamEvent[];
  readonly watched?: Partial<Watched>;
  readonly evidence?: Partial<Evidence>;
}

function evidenceWith({
  events = EVENTS,
  marks = MARKS,
  run = {},
  replay = REPLAY,
  watched = {},
  evidence = {},
}: Changes): Evidence {
  const accepted: AcceptedRun = { id: ID, pipeline, acceptedAt: 1_000, shownEnd: 'SUCCESS', ...run };
  const journaled: JournaledRun = { id: ID, partition: 0, events: [...events] };
  return {
    account: {
      accepted: [accepted],
      unanswered: [],
      broken: [],
      reads: 0,
      cancels: 0,
      watched: [{ runId: ID, events: [...REPLAY], reconnects: 1, state: 'ended', ...watched }],
    },
    journal: { runs: new Map([[ID, journaled]]), faults: [] },
    marks: new Map([[ID, new Map(Object.entries(marks))]]),
    documents: new Map([[ID, { version: events.length, status: 'SUCCESS', open: false }]]),
    replays: new Map([[ID, replay]]),
    orphans: [],
    mayLoseAttempts: true,
    ...evidence,
  };
}

function kindsOf(changes: Changes): ViolationKind[] {
  return [...new Set(check(evidenceWith(changes)).violations.map(({ kind }) => kind))];
}

function withMarks(stage: string, marks: readonly Mark[]): Changes {
  return { marks: { ...MARKS, [stage]: marks } };
}

describe('the checker', () => {
  it('finds nothing wrong with a sound account', () => {
    const { violations, totals } = check(evidenceWith({}));
    expect(violations).toEqual([]);
    expect(totals).toMatchObject({ accepted: 1, ended: { SUCCESS: 1 }, attempts: 3, attemptsLost: 1 });
  });

  it.each([
    ['by itself', 'fail', {}, false],
    ['as its disk was full', 'full', { disksFilled: true }, false],
    ['as its disk was full, and no disk was', 'full', {}, true],
    ['without saying so', 'tick', { disksFilled: true }, true],
  ] as const)('sees whether a stage has exited %s: %s, %o', (_how, kind, evidence, isWrong) => {
    const events = EVENTS.map((event): RunEvent =>
      event.type === 'stage_completed' && event.stage === 'b'
        ? { ...event, status: 'FAILED', reason: 'exit', exitCode: 1 }
        : event,
    );
    const changes = { ...withMarks('b', [mark('start', 1, 5_100), mark(kind, 1, 5_900)]), events, evidence };
    const found = check(evidenceWith(changes)).violations.filter(({ detail }) =>
      detail.includes('did not exit itself'),
    );
    expect(found).toHaveLength(isWrong ? 1 : 0);
  });

  const wrongs: readonly (readonly [string, ViolationKind, Changes])[] = [
    ['an accepted run that is in no journal', 'lost', { evidence: { journal: { runs: new Map(), faults: [] } } }],
    ['an accepted run that never ends', 'unfinished', { events: EVENTS.slice(0, -1) }],
    [
      'an attempt that is never confirmed gone',
      'unfinished',
      {
        events: [...EVENTS.slice(0, 9), { type: 'run_cancelled', at: 6_000, cancelledStages: 1 }],
        run: { shownEnd: undefined },
      },
    ],
    [
      'an attempt that starts twice',
      'doubled',
      withMarks('b', [mark('start', 1, 5_100), mark('start', 1, 5_200), mark('end', 1, 5_900)]),
    ],
    ['an attempt that was never granted', 'doubled', withMarks('b', [...(MARKS['b'] ?? []), mark('start', 2, 5_950)])],
    [
      'an attempt that lives into the next one',
      'overlapping',
      withMarks('a', [mark('start', 1, 1_200), mark('start', 2, 4_200), mark('tick', 1, 4_300), mark('end', 2, 4_900)]),
    ],
    [
      'an attempt that lives after it was declared lost',
      'late',
      withMarks('a', [mark('start', 1, 1_200), mark('tick', 1, 3_500), mark('start', 2, 4_200), mark('end', 2, 4_900)]),
    ],
    ['a result that is taken after the end', 'late', { events: [...EVENTS, completed('b', 1, 6_100)] }],
    [
      'a stage that starts before its dependency has ended',
      'order',
      withMarks('b', [mark('start', 1, 4_500), mark('end', 1, 5_900)]),
    ],
    ['a success that never came to its end', 'untrue', withMarks('b', [mark('start', 1, 5_100)])],
    ['an attempt declared lost for no reason', 'untrue', { evidence: { mayLoseAttempts: false } }],
    [
      'an attempt that ran into a time-out of half an hour',
      'untrue',
      {
        events: [
          ...EVENTS.slice(0, 9),
          { ...completed('b', 1, 6_000), status: 'FAILED', reason: 'timeout' } as RunEvent,
          { type: 'run_completed', at: 6_000, status: 'FAILED' },
        ],
        run: { shownEnd: 'FAILED' },
      },
    ],
    [
      'events that do not make a run',
      'journal',
      { events: [...EVENTS.slice(0, 2), started('a', 1, 1_100), started('a', 2, 1_200), ...EVENTS.slice(3)] },
    ],
    [
      'a document that is behind',
      'document',
      { evidence: { documents: new Map([[ID, { version: 3, status: 'RUNNING', open: true }]]) } },
    ],
    ['a watcher that heard a line twice', 'stream', { watched: { events: [REPLAY[0] as StreamEvent, ...REPLAY] } }],
    ['a watcher that missed a line', 'stream', { watched: { events: REPLAY.slice(1) } }],
    ['a watcher left hanging', 'stream', { watched: { state: 'given up' } }],
    [
      'an event stream that lacks a line of a success',
      'stream',
      {
        replay: REPLAY.slice(0, 1).concat(REPLAY.slice(2)),
        watched: { events: [...REPLAY.slice(0, 1), ...REPLAY.slice(2)] },
      },
    ],
    ['a cancel that was answered and did not hold', 'answer', { run: { cancel: 'cancelled' } }],
    ['an end that was shown and is another', 'answer', { run: { shownEnd: 'FAILED' } }],
    ['a process that lives on', 'orphan', { evidence: { orphans: ['pid 1: sleep'] } }],
  ];
  it.each(wrongs)('sees %s', (_what, kind, changes) => {
    expect(kindsOf(changes)).toContain(kind);
  });

  describe('grants that came to nothing (P12)', () => {
    const returned: RunEvent = { type: 'stage_returned', at: 5_100, stage: 'b', attempt: 1 };
    const events: readonly RunEvent[] = [
      ...EVENTS.slice(0, 9),
      returned,
      started('b', 2, 5_100),
      completed('b', 2, 6_000),
      { type: 'run_completed', at: 6_000, status: 'SUCCESS' },
    ];

    it('are no attempts: what their stage counts as its first is the first that ran', () => {
      expect(kindsOf({ events })).toEqual([]);
    });

    it('and ran all the same are doubled', () => {
      const b = [mark('start', 1, 5_050), mark('start', 1, 5_150), mark('end', 1, 5_900)];
      expect(kindsOf({ events, marks: { ...MARKS, b } })).toContain('doubled');
    });
  });

  it('takes two runs of a group that live at a time for an overlap', () => {
    const evidence = evidenceWith({});
    const other = ID.replace('01a1', '01a2');
    const grouped = { ...pipeline, grouped: true };
    const marks = new Map([...evidence.marks, [other, new Map([['a', [mark('start', 1, 5_500)]]])]]);
    const unanswered = [
      { id: ID, pipeline: grouped },
      { id: other, pipeline: grouped },
    ];
    const { violations } = check({ ...evidence, marks, account: { ...evidence.account, accepted: [], unanswered } });
    expect(violations.map(({ kind }) => kind)).toContain('overlapping');
  });
});

describe('where clocks were set an hour back or forward', () => {
  const HOUR_MS = 3_600_000;
  const withClocks = (b: readonly Mark[], completedAt: number): ViolationKind[] => {
    const evidence = evidenceWith({ ...withMarks('b', b), evidence: { clocksStepped: true } });
    const committedAt = EVENTS.map((event) => (event.type === 'stage_completed' ? completedAt : event.at));
    const runs = new Map([[ID, { id: ID, partition: 0, events: [...EVENTS], committedAt }]]);
    return check({ ...evidence, journal: { runs, faults: [] } }).violations.map(({ kind }) => kind);
  };
  const b = [mark('start', 1, 5_100), mark('end', 1, 5_900)];

  it('the hour is no reason to take an attempt for one that lived on', () => {
    expect(withClocks(b, 6_000 - HOUR_MS)).toEqual([]);
    expect(withClocks(b, 6_000 + HOUR_MS)).toEqual([]);
  });

  it('one that lives a second after its end is seen all the same', () => {
    const late = [...b, mark('tick', 1, 7_000)];
    expect(withClocks(late, 6_000 - HOUR_MS)).toContain('late');
    expect(withClocks(late, 6_000 + HOUR_MS)).toContain('late');
  });
});

describe('where LOGS kept less than was written', () => {
  const line = (number: number): StreamEvent =>
    emitted('stage_log', { stage: 'a', stream: 'stdout', line: `line 2 ${number}` });
  const gap = emitted('stage_log', {
    stage: 'a',
    stream: 'system',
    line: '[16 bytes of this log are no longer available]',
  });
  const end = REPLAY.slice(2);
  const whole = [line(1), line(2), ...end];
  const found = (heard: readonly StreamEvent[], replay: readonly StreamEvent[], logsLimited = true): ViolationKind[] =>
    kindsOf({ replay, watched: { events: [...heard] }, evidence: { logsLimited } });

  it('a part that is told as missing may be missing, also from what a watcher has heard', () => {
    expect(found(whole, [gap, line(2), ...end])).toEqual([]);
    expect(found([line(1), gap, ...end], [gap, ...end])).toEqual([]);
  });

  it('what stands behind it may come again to who has come back, and to nobody else', () => {
    const again = [line(1), line(2), gap, line(2), ...end];
    expect(found(again, whole)).toEqual([]);
    expect(kindsOf({ watched: { events: again, reconnects: 0 }, evidence: { logsLimited: true } })).toContain('stream');
  });

  it('one that is missing without a word is not, nor is a line that comes twice', () => {
    expect(found(whole, [line(2), ...end])).toContain('stream');
    expect(found([line(1), line(1), line(2), ...end], whole)).toContain('stream');
    expect(found([line(2), ...end], whole)).toContain('stream');
    expect(found(whole, [gap, line(2), line(1), ...end])).toContain('stream');
  });

  it('a text with a part that is missing is not shown as whole', () => {
    const done = (more: Record<string, unknown>): StreamEvent => emitted('stage_completed', { stage: 'a', ...more });
    const replay = (more: Record<string, unknown>): StreamEvent[] => [gap, line(2), done(more), ...end];
    const heard = [line(1), line(2), done({ logs: 'line 2 1\nline 2 2\n' }), ...end];
    expect(found(heard, replay({ logs: 'line 2 2\n', truncated: true }))).toEqual([]);
    expect(found(heard, replay({ logs: 'line 2 2\n' }))).toContain('stream');
  });

  it('nothing is missing where nothing had happened to LOGS', () => {
    expect(found([gap, line(2), ...end], [gap, line(2), ...end], false)).toContain('stream');
  });
});

describe('the event stream of a cancelled run', () => {
  const line = (number: number): StreamEvent =>
    emitted('stage_log', { stage: 'a', stream: 'stdout', line: `line 1 ${number}` });
  const cancelled = emitted('pipeline_cancelled', { status: 'CANCELLED' });
  const watched = (events: readonly StreamEvent[]): Watched => ({
    runId: ID,
    events: [...events],
    reconnects: 0,
    state: 'ended',
  });

  it('is the same live and afterwards, also what its stages wrote while they were being stopped', () => {
    expect(checkStream(watched([line(1), line(2), cancelled]), [line(1), line(2), cancelled])).toEqual([]);
    expect(checkStream(watched([line(1), line(2), cancelled]), [line(1), cancelled])).not.toEqual([]);
    expect(checkStream(watched([line(1), cancelled]), [line(1), line(2), cancelled])).not.toEqual([]);
    expect(checkStream(watched([line(2), cancelled]), [line(1), cancelled])).not.toEqual([]);
  });
});

describe('the journal that it reads', () => {
  const commit = (more: object): ReturnType<typeof decodeCommit> =>
    decodeCommit(
      Buffer.from(
        JSON.stringify({
          id: 'c',
          kind: 'runs',
          partition: 0,
          epoch: 1,
          number: 1,
          owner: 'm',
          minReader: 1,
          at: 0,
          runs: [],
          ...more,
        }),
      ),
    );

  it('has a fault where a deposed owner commits, where numbers have a gap, and where versions do (P1)', () => {
    const journal = new Journal(undefined as never, 1);
    journal.take(commit({ kind: 'opened' }));
    journal.take(commit({ kind: 'opened', number: 2, epoch: 2, owner: 'n' }));
    expect(journal.faults).toEqual([]);
    journal.take(commit({ number: 3 }));
    expect(journal.faults).toHaveLength(1);
    journal.take(commit({ number: 5, epoch: 1, runs: [{ id: ID, from: 2, events: [] }] }));
    expect(journal.faults).toHaveLength(3);
  });
});

describe('what clients see', () => {
  const answer = (status: string, stage: string, attempt: number): Parameters<typeof wentBack>[0] => ({
    id: ID,
    status,
    stages: [{ name: 'a', status: stage, attempt }],
  });

  it('goes back where an end changes or an attempt is lower, not where a stage is retried', () => {
    expect(wentBack(answer('RUNNING', 'RUNNING', 1), answer('RUNNING', 'PENDING', 1))).toBe(false);
    expect(wentBack(answer('RUNNING', 'RUNNING', 2), answer('RUNNING', 'RUNNING', 1))).toBe(true);
    expect(wentBack(answer('RUNNING', 'QUEUED', 2), answer('RUNNING', 'QUEUED', 1))).toBe(true);
    expect(wentBack(answer('RUNNING', 'RUNNING', 2), answer('RUNNING', 'QUEUED', 0))).toBe(true);
    // A grant that came to nothing.
    expect(wentBack(answer('RUNNING', 'RUNNING', 1), answer('RUNNING', 'QUEUED', 0))).toBe(false);
    expect(wentBack(answer('RUNNING', 'RUNNING', 1), answer('CANCELLED', 'CANCELLED', 0))).toBe(false);
    expect(wentBack(answer('RUNNING', 'RUNNING', 2), answer('CANCELLED', 'CANCELLED', 0))).toBe(true);
    expect(wentBack(answer('RUNNING', 'RUNNING', 1), answer('SUCCESS', 'SUCCESS', 0))).toBe(true);
    expect(wentBack(answer('SUCCESS', 'SUCCESS', 1), answer('RUNNING', 'SUCCESS', 1))).toBe(true);
    expect(wentBack(answer('CANCELLED', 'CANCELLED', 1), answer('SUCCESS', 'SUCCESS', 1))).toBe(true);
  });

  it('marks that a kill has cut short are none', () => {
    expect(parseMarks('start 1 1700000000123456789\ntick 1 17000')).toEqual([mark('start', 1, 1_700_000_000_123.456)]);
  });
});
