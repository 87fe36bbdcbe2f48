import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { attemptsOf, compareViews, eventViewOf, viewAt, viewOf, type RunView } from '@penstock/run';
import { createdEvent, DrivenRun, matrix, pipeline, RUN_ID, stage } from './support.ts';

const retry = { max: 3, backoff: 'constant', delayMs: 1_000, on: ['failure', 'lost'] } as const;
const definition = pipeline(
  stage('a', { retry, outputs: ['v'] }),
  ...matrix('m', 3, { after: ['a'], retry }),
  stage('z', { after: ['m (n=0)', 'm (n=1)', 'm (n=2)'] }),
);

type Move = readonly ['grant' | 'succeed' | 'fail' | 'lose' | 'wait' | 'cancel', number];
const move: fc.Arbitrary<Move> = fc.tuple(
  fc.constantFrom('grant', 'grant', 'succeed', 'succeed', 'fail', 'lose', 'wait', 'cancel'),
  fc.nat(4),
);

describe('looking back', () => {
  it('the fold of every prefix of a run’s events is what was served then', () => {
    fc.assert(
      fc.property(fc.array(move, { maxLength: 40 }), (moves) => {
        const driven = new DrivenRun(definition);
        const served = new Map<number, RunView>();
        const look = (): void => void served.set(driven.run.version, structuredClone(viewOf(driven.run)));
        look();
        for (const [what, index] of moves) {
          const { name = '', status, live } = driven.run.stages.get(index) ?? {};
          if (what === 'wait') driven.tell({ type: 'wake', at: driven.at + 1_000 });
          else if (what === 'cancel') {
            if (index === 0) driven.tell({ type: 'cancel' });
          } else if (what === 'grant') {
            if (status === 'QUEUED') driven.grant(name);
          } else if (live !== undefined) driven[what](name);
          look();
        }
        for (const [version, view] of served)
          expect(viewAt(RUN_ID, driven.definition, driven.events, version)).toEqual(view);
      }),
      { numRuns: 200 },
    );
  });

  it('a version that the run does not have is an error of ours', () => {
    const driven = new DrivenRun(definition);
    for (const version of [0, driven.events.length + 1])
      expect(() => viewAt(RUN_ID, definition, driven.events, version)).toThrow(`no version ${version}`);
  });

  it('attempts are told one by one, with how long each waited; what never ran is none', () => {
    const driven = new DrivenRun(definition);
    driven.grant('a');
    driven.lose('a');
    driven.tell({ type: 'wake', at: driven.at + 1_000 });
    driven.grant('a', 'r2');
    driven.fail('a');
    driven.tell({ type: 'wake', at: driven.at + 1_000 });
    driven.grant('a', 'r3');
    const a = attemptsOf(driven.events).get('a');
    expect(a).toMatchObject([
      { number: 1, runner: 'r1', status: 'FAILED', reason: 'runner_lost' },
      { number: 2, runner: 'r2', status: 'FAILED', reason: 'exit' },
      { number: 3, runner: 'r3', status: 'RUNNING', reason: null, finishedAt: null },
    ]);
    for (const { queuedMs, startedAt } of a ?? []) {
      expect(queuedMs).toBeGreaterThan(0);
      expect(startedAt).toMatch(/Z$/);
    }
    driven.tell({ type: 'cancel' });
    driven.lose('a');
    expect(attemptsOf(driven.events).get('a')?.at(-1)).toMatchObject({ number: 3, status: 'CANCELLED' });
    expect(attemptsOf(driven.events).get('z')).toBeUndefined();
  });

  it('an event is told with a sentence, and without sessions, addresses and manifests', () => {
    const lock = { uses: 'build/node@^2', id: 'build/node', version: '2.1.0', hash: 'f00d' };
    const created = createdEvent({
      origin: { kind: 'webhook', repository: 'o/r', cloneUrl: 'https://user:hidden@host/o/r' },
      extensions: [{ ...lock, manifest: 'run: hidden' }],
    });
    expect(eventViewOf(1, created, true).data).not.toContain('hidden');
    expect(JSON.parse(eventViewOf(1, created, true).data)).toMatchObject({
      origin: { repository: 'o/r' },
      extensions: [lock],
    });
    const driven = new DrivenRun(definition);
    driven.grant('a');
    const views = driven.events.map((event, index) => eventViewOf(index + 1, event, true));
    expect(views.map(({ version }) => version)).toEqual(views.map((_, index) => index + 1));
    const started = views.find(({ type }) => type === 'stage_started');
    expect(started).toMatchObject({ stage: 'a', attempt: 1, summary: "'a' was given to the runner r1 (attempt 1)" });
    expect(Object.keys(JSON.parse(started?.data ?? ''))).not.toContain('session');
    expect(
      eventViewOf(9, { type: 'stages_skipped', at: 0, stages: ['1', '2', '3', '4', '5', '6'], reason: 'when' }, true)
        .summary,
    ).toBe("'1', '2', '3', '4', '5' and 1 more were skipped (when)");
  });

  it('two runs are compared stage by stage, in the order of the second', () => {
    const end = (stages: readonly string[], failing: readonly string[]): RunView => {
      const driven = new DrivenRun(pipeline(...stages.map((name) => stage(name))));
      for (const name of stages) {
        driven.grant(name);
        if (failing.includes(name)) driven.fail(name);
        else driven.succeed(name);
      }
      return viewOf(driven.run);
    };
    const compared = compareViews(
      end(['same', 'fixed', 'broken', 'gone'], ['fixed']),
      end(['new', 'broken', 'fixed', 'same'], ['broken']),
    );
    expect(compared.map(({ stage: name, change, a, b }) => [name, change, a?.status, b?.status])).toEqual([
      ['new', 'added', undefined, 'SUCCESS'],
      ['broken', 'broken', 'SUCCESS', 'FAILED'],
      ['fixed', 'fixed', 'FAILED', 'SUCCESS'],
      ['same', 'same', 'SUCCESS', 'SUCCESS'],
      ['gone', 'removed', 'SUCCESS', undefined],
    ]);
  });
});
