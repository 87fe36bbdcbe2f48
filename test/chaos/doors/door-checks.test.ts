/** What the account of pushes, publications and logins is there to find. */
import type { RunEvent } from '@penstock/run';
import { describe, expect, it } from 'vitest';
import type { JournaledRun } from '../journal.ts';
import type { ViolationKind } from '../violations.ts';
import { checkDoors } from './door-checks.ts';
import type { DoorAccount } from './door-load.ts';
import type { SessionAccount } from './logins.ts';

const [ID, OTHER] = ['01a1fe8b-4b7f-7669-960f-9ed2b096f43f', '01a2fe8b-4b7f-7669-960f-9ed2b096f43f'];

function runOf(id: string, deliveryId: string, isOver = true): JournaledRun {
  const created: RunEvent = {
    type: 'run_created',
    at: 1_000,
    tenant: 'service',
    key: 'service/p',
    pipelineName: 'p',
    yaml: '',
    priority: 0,
    origin: { kind: 'webhook', deliveryId },
  };
  const completed: RunEvent = { type: 'run_completed', at: 2_000, status: 'SUCCESS' };
  return { id, partition: 0, events: isOver ? [created, completed] : [created] };
}

const SESSION: SessionAccount = {
  login: 'somebody',
  refreshes: 3,
  state: 'in',
  broken: [],
  works: { access: true, refresh: true },
};

function kindsOf(
  changes: {
    readonly deliveries?: Partial<DoorAccount['deliveries']>;
    readonly publishes?: Partial<DoorAccount['publishes']>;
    readonly session?: Partial<SessionAccount>;
  },
  runs: readonly JournaledRun[] = [runOf(ID, 'chaos-1')],
): ViolationKind[] {
  const account: DoorAccount = {
    deliveries: {
      prefix: 'chaos-',
      answered: new Map([['chaos-1', new Set([ID])]]),
      unanswered: new Set(),
      refused: [],
      ...changes.deliveries,
    },
    publishes: {
      accepted: new Map([['x@1.0.0', 'hash']]),
      listed: [['x@1.0.0', 'hash']],
      spoiled: [],
      refused: [],
      ...changes.publishes,
    },
    logins: { sessions: [{ ...SESSION, ...changes.session }], interrupted: 0 },
  };
  return checkDoors(account, new Map(runs.map((run) => [run.id, run]))).map(({ kind }) => kind);
}

describe('what came in by the other doors', () => {
  it('is sound where each delivery has its run, each version stands once, each session works', () => {
    expect(kindsOf({})).toEqual([]);
    expect(kindsOf({}, [runOf(ID, 'chaos-1'), runOf(OTHER, "another load's")])).toEqual([]);
  });

  it('a delivery that was accepted and has no run, or one that never ends, or two', () => {
    expect(kindsOf({}, [])).toContain('lost');
    expect(kindsOf({}, [runOf(ID, 'chaos-1', false)])).toContain('unfinished');
    expect(kindsOf({}, [runOf(ID, 'chaos-1'), runOf(OTHER, 'chaos-1')])).toContain('doubled');
    expect(kindsOf({ deliveries: { answered: new Map([['chaos-1', new Set([ID, OTHER])]]) } })).toContain('doubled');
  });

  it('a run of a delivery that nobody sent, and an answer that none deserves', () => {
    expect(kindsOf({}, [runOf(ID, 'chaos-1'), runOf(OTHER, 'chaos-2')])).toContain('untrue');
    expect(kindsOf({ deliveries: { refused: ['chaos-3 was answered 400'] } })).toContain('answer');
    expect(
      kindsOf({ deliveries: { unanswered: new Set(['chaos-2']) } }, [runOf(ID, 'chaos-1'), runOf(OTHER, 'chaos-2')]),
    ).toEqual([]);
  });

  it('a version that is gone, stands twice or has other bytes', () => {
    expect(kindsOf({ publishes: { listed: [] } })).toContain('lost');
    expect(
      kindsOf({
        publishes: {
          listed: [
            ['x@1.0.0', 'hash'],
            ['x@1.0.0', 'hash'],
          ],
        },
      }),
    ).toContain('doubled');
    expect(kindsOf({ publishes: { listed: [['x@1.0.0', 'another']] } })).toContain('untrue');
    expect(kindsOf({ publishes: { spoiled: ['hash'] } })).toContain('lost');
    expect(kindsOf({ publishes: { refused: ['x@1.0.1: CONFLICT'] } })).toContain('answer');
  });

  it('a session that works no more, or works after its logout', () => {
    expect(kindsOf({ session: { works: { access: false, refresh: true } } })).toContain('lost');
    expect(kindsOf({ session: { state: 'out' } })).toContain('answer');
    expect(kindsOf({ session: { broken: ['refresh 2 was answered 401'] } })).toContain('answer');
    expect(kindsOf({ session: { state: 'unsure', works: { access: false, refresh: false } } })).toEqual([]);
    expect(kindsOf({ session: { state: 'out', works: { access: false, refresh: false } } })).toEqual([]);
  });
});
