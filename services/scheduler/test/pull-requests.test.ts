/** Runs of pull requests (P27): held until somebody approves them, and superseded by newer heads. */
import { describe, expect, it } from 'vitest';
import type { ApproveReply, CreateRequest } from '@penstock/bus';
import { monthOf, newRunId, type TriggerOrigin } from '@penstock/run';
import { definitions, Harness, HOUR_MS, NOW, settings, stage, text } from './support.ts';
import { LiveRun } from '@penstock/scheduler/testing';

const one = text([stage('a')]);
const DAY_MS = 24 * HOUR_MS;
const UNLIMITED = 2_147_483_647;

interface Head {
  readonly sequence?: number;
  readonly commit?: string;
  readonly number?: number;
  readonly repository?: string;
}

function originOf({ sequence, commit = 'a', number = 7, repository = 'acme/demo' }: Head): TriggerOrigin {
  return {
    kind: 'webhook',
    provider: 'git_host_a',
    repository,
    ref: `refs/pull/${number}/head`,
    commit,
    pullRequest: { number, branch: 'main', fork: true, ...(sequence === undefined ? {} : { sequence }) },
  };
}

const held = (head: Head = {}, more: Partial<CreateRequest> = {}) =>
  ({ origin: originOf(head), held: 'approval', ...more }) as const;
const head = (sequence: number, commit: string, more: Partial<CreateRequest> & { readonly number?: number } = {}) => {
  const { number = 7, ...rest } = more;
  return { origin: originOf({ sequence, commit, number }), ...rest };
};

function approve(world: Harness, runId: string, tenants = ['ada']): ApproveReply[] {
  const replies: ApproveReply[] = [];
  world.partition.approve({ runId, tenants, by: 'grace' }, (reply) => void replies.push(reply));
  return replies;
}

const statusOf = (world: Harness, id: string): unknown => {
  let status: unknown;
  world.partition.get({ runIds: [id] }, (reply) => {
    status = reply.ok ? (reply.runs[0]?.status ?? null) : reply;
  });
  return status;
};
const usedBy = (world: Harness): unknown => {
  let used: unknown;
  world.partition.get({ runIds: [], usage: { key: 'ada', month: monthOf(world.now) } }, (reply) => {
    used = reply.ok ? reply.usage : reply;
  });
  return used;
};

describe('a run that waits for its approval', () => {
  it('is QUEUED, is granted nothing, and takes neither a place nor one of the month', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 4 });
    const limits = { maxConcurrent: 1, pipelineRunLimit: UNLIMITED };
    const { id, replies } = world.create(one, held({}, { limits }));
    world.settle();
    expect(replies).toMatchObject([{ ok: true, created: true, run: { status: 'QUEUED' } }]);
    expect([world.jobs.length, usedBy(world)]).toEqual([0, { runs: 0, stageMs: 0, active: 0 }]);
    const other = world.create(one, { limits });
    world.settle();
    expect([world.jobs.map(({ message }) => message.runId), statusOf(world, id)]).toEqual([[other.id], 'QUEUED']);
  });

  it('goes on in the commit of its approval, which counts it; approving again is the same', () => {
    const world = new Harness();
    const { id } = world.create(one, held());
    world.settle();
    world.later(DAY_MS);
    world.session('r1-s', { credits: 4 });
    const [first, second] = [approve(world, id), approve(world, id)];
    expect(world.acknowledge().runs.map(({ events }) => events)).toMatchObject([
      [{ type: 'run_approved', by: 'grace', runOfMonth: 1 }, { type: 'stages_queued' }, { type: 'stage_started' }],
    ]);
    world.settle();
    expect([first, second]).toMatchObject([[{ ok: true }], [{ ok: true }]]);
    expect(usedBy(world)).toMatchObject({ runs: 1, active: 1 });
    world.result(world.job(0));
    world.settle();
    expect(approve(world, id)).toMatchObject([{ ok: false, code: 'CONFLICT' }]);
  });

  it('is approved by its tenant, and by nobody who does not see it', () => {
    const world = new Harness();
    const { id } = world.create(one, held());
    world.settle();
    expect(approve(world, id, ['eve'])).toMatchObject([{ ok: false, code: 'NOT_FOUND' }]);
    expect(statusOf(world, id)).toBe('QUEUED');
  });

  it('cannot be approved where the month is used up, and goes on waiting', () => {
    const world = new Harness();
    const limits = { maxConcurrent: UNLIMITED, pipelineRunLimit: 1 };
    const { id } = world.create(one, held({}, { limits }));
    world.create(one, { limits });
    world.settle();
    expect(approve(world, id)).toMatchObject([{ ok: false, code: 'QUOTA_EXCEEDED' }]);
    expect(statusOf(world, id)).toBe('QUEUED');
  });

  it('takes its turn in its group behind those that were created while it waited', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 4 });
    const grouped = text([stage('a')], { concurrency: { group: ['g'], cancelInProgress: false } });
    const waits = world.create(grouped, held());
    world.settle();
    const [first, second] = [world.create(grouped), world.create(grouped)];
    world.settle();
    approve(world, waits.id);
    world.settle();
    for (const index of [0, 1, 2]) {
      world.result(world.job(index));
      world.settle();
    }
    expect(world.jobs.map(({ message }) => message.runId)).toEqual([first.id, second.id, waits.id]);
  });

  it('ends SKIPPED after 30 days by the boot clock, whatever the wall clock says', () => {
    const world = new Harness();
    const { id } = world.create(one, held());
    world.settle();
    world.now += 60 * DAY_MS;
    world.boot += 30 * DAY_MS - 10;
    world.partition.tick();
    world.settle();
    expect(statusOf(world, id)).toBe('QUEUED');
    world.later(20);
    expect(world.acknowledge().runs.map(({ events }) => events)).toMatchObject([
      [
        { type: 'stages_skipped', stages: ['a'], reason: 'approval' },
        { type: 'run_completed', status: 'SKIPPED', reason: 'approval' },
      ],
    ]);
    expect(approve(world, id)).toMatchObject([{ ok: false, code: 'CONFLICT' }]);
  });

  it('ends very many that nobody has approved turn after turn, and looks past those that somebody has', () => {
    const count = 250;
    const world = new Harness({ settings: { heldMax: count, liveRunsPerKeyMax: count } });
    const ids = Array.from({ length: count }, (_, number) => world.create(one, held({ number })).id);
    world.settle();
    for (const id of ids.slice(0, 10)) approve(world, id);
    world.settle();
    const ended = (): number =>
      world.appended
        .flatMap(({ commit }) => commit.runs.flatMap(({ events }) => events))
        .filter((event) => event.type === 'run_completed' && event.reason === 'approval').length;
    world.later(30 * DAY_MS);
    world.settle();
    const first = ended();
    while ((world.partition.nextWake() ?? Infinity) <= world.boot) {
      world.partition.tick();
      world.settle();
    }
    expect(first).toBeGreaterThan(0);
    expect(first).toBeLessThan(count / 2);
    expect(ended()).toBe(count - 10);
  });

  it('waits on after a take-over, as long as was left of its time', () => {
    const created = new Harness();
    const { id } = created.create(one, held());
    const commit = created.acknowledge();
    const events = [...(commit.runs[0]?.events ?? [])];
    const run = LiveRun.restore(id, definitions.find(one).definition, { events, sequence: 1 }, settings);
    const world = new Harness({ start: false });
    world.now = NOW + 29 * DAY_MS;
    world.start({ sequence: 100, commitNumber: 1, runs: [run] });
    world.session('r1-s', { credits: 4 });
    world.settle();
    expect([statusOf(world, id), world.jobs.length]).toEqual(['QUEUED', 0]);
    world.later(DAY_MS + 10);
    world.settle();
    expect(statusOf(world, id)).toBe('SKIPPED');
  });

  it('of more than may wait of a repository the oldest ends SKIPPED; other repositories have a bound of their own', () => {
    const world = new Harness({ settings: { heldMax: 2 } });
    const ids = ['a', 'b', 'c'].map((commit) => world.create(one, held({ commit })).id);
    const elsewhere = world.create(one, held({ repository: 'acme/other' })).id;
    world.settle();
    expect([...ids, elsewhere].map((id) => statusOf(world, id))).toEqual(['SKIPPED', 'QUEUED', 'QUEUED', 'QUEUED']);
  });

  it('can be cancelled', () => {
    const world = new Harness();
    const { id } = world.create(one, held());
    world.settle();
    world.partition.cancel({ runId: id, tenants: ['ada'] }, () => {});
    world.settle();
    expect(statusOf(world, id)).toBe('CANCELLED');
  });
});

describe('heads of a pull request', () => {
  it('a new one cancels the runs of older ones in its own commit, those that wait for an approval too', () => {
    const world = new Harness();
    const [first, second] = [world.create(one, head(1, 'a')), world.create(one, held({ sequence: 2, commit: 'a' }))];
    world.settle();
    const third = world.create(one, head(3, 'b'));
    const commit = world.acknowledge();
    expect(new Set(commit.runs.map(({ id }) => id))).toEqual(new Set([first.id, second.id, third.id]));
    world.settle();
    expect([first, second, third].map(({ id }) => statusOf(world, id))).toEqual(['CANCELLED', 'CANCELLED', 'PENDING']);
  });

  it('one of another pull request, key, commit or of later deliveries is left alone', () => {
    const world = new Harness();
    const others = [
      world.create(one, head(1, 'a', { number: 8 })),
      world.create(one, {
        ...head(1, 'a'),
        key: 'eve',
        id: newRunId({ now: NOW, key: 'eve', random: new Uint8Array(8) }),
      }),
      world.create(one, head(2, 'b')),
      world.create(one, { origin: { kind: 'webhook', repository: 'acme/demo', ref: 'refs/pull/7/head', commit: 'a' } }),
    ];
    world.settle();
    world.create(one, head(3, 'b'));
    world.settle();
    expect(others.map(({ id }) => statusOf(world, id))).toEqual(['PENDING', 'PENDING', 'PENDING', 'PENDING']);
  });

  it('one that is behind a newer head is CANCELLED as it begins, and counts for nothing', () => {
    const world = new Harness();
    world.create(one, head(5, 'b'));
    world.settle();
    const { id, replies } = world.create(one, head(4, 'a'));
    world.settle();
    expect(replies).toMatchObject([{ ok: true, run: { status: 'CANCELLED', pipelineName: 'ship', stages: [] } }]);
    expect(usedBy(world)).toMatchObject({ runs: 1 });
    world.project();
    expect(statusOf(world, id)).toBe(null);
    // The same commit once more is no other head.
    expect(world.create(one, head(3, 'b')).replies).toEqual([]);
    world.settle();
    expect(usedBy(world)).toMatchObject({ runs: 2 });
  });

  it('leaves older ones alone where it is to', () => {
    const world = new Harness();
    const { id } = world.create(one, head(1, 'a'));
    world.settle();
    world.create(one, head(2, 'b', { keepsSuperseded: true }));
    world.settle();
    expect(statusOf(world, id)).toBe('PENDING');
  });

  it('is asked of the store where no run in memory says it, once; while the store is away nothing is created', () => {
    const world = new Harness();
    world.storedHead = 'unavailable';
    expect(world.create(one, head(4, 'a')).replies).toMatchObject([{ ok: false, code: 'UNAVAILABLE' }]);
    world.storedHead = { sequence: 9, commit: 'z' };
    const { replies } = world.create(one, head(4, 'a'));
    world.create(one, head(5, 'b'));
    world.settle();
    expect(replies).toMatchObject([{ ok: true, run: { status: 'CANCELLED' } }]);
    expect(world.askedHeads).toEqual([7, 7]);
  });

  it('of a run that is created and gone while the store is asked is not forgotten', () => {
    const world = new Harness();
    world.answersHeadsLater = true;
    const late = world.create(one, head(1, 'a'));
    world.answersHeadsLater = false;
    world.create('', { ...head(2, 'b'), ended: { pipelineName: 'p', status: 'SKIPPED' } });
    world.settle();
    world.project();
    world.storedHead = null;
    world.headAnswers.shift()?.();
    world.settle();
    expect(late.replies).toMatchObject([{ ok: true, run: { status: 'CANCELLED' } }]);
  });

  it('of a run that was taken over, and is gone while the store is asked, is not forgotten', () => {
    const created = new Harness();
    const { id } = created.create(one, head(2, 'b'));
    const events = [...(created.acknowledge().runs[0]?.events ?? [])];
    const run = LiveRun.restore(id, definitions.find(one).definition, { events, sequence: 1 }, settings);
    const world = new Harness({ start: false });
    world.start({ sequence: 100, commitNumber: 1, runs: [run] });
    world.settle();
    world.answersHeadsLater = true;
    const otherId = newRunId({ now: NOW, key: 'ada', random: new Uint8Array(8).fill(7) });
    const late = world.create(one, { ...head(1, 'a'), id: otherId });
    world.partition.cancel({ runId: id, tenants: ['ada'] }, () => {});
    world.settle();
    world.project();
    expect(statusOf(world, id)).toBe(null);
    world.headAnswers.shift()?.();
    world.settle();
    expect(late.replies).toMatchObject([{ ok: true, run: { status: 'CANCELLED' } }]);
  });

  it('what its sender found elsewhere is created CANCELLED, supersedes nothing and is no head', () => {
    const world = new Harness();
    const { id } = world.create(one, head(1, 'a'));
    const stale = world.create('', {
      origin: originOf({ commit: 'b' }),
      ended: { pipelineName: 'p', status: 'CANCELLED' },
    });
    world.settle();
    expect([statusOf(world, id), statusOf(world, stale.id)]).toEqual(['PENDING', 'CANCELLED']);
    expect(usedBy(world)).toMatchObject({ runs: 1 });
    world.create(one, head(2, 'a'));
    world.settle();
    expect(statusOf(world, id)).toBe('PENDING');
  });
});
