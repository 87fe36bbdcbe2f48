/** Runs that are deleted (P34), as the owner of a partition decides it. */
import { describe, expect, it } from 'vitest';
import type { CancelReply, CreateReply, DeleteReply } from '@penstock/bus';
import { Harness, HOUR_MS, stage, text } from './support.ts';

const ONE = text([stage('build')]);

let credits = 0;

/** Of a run whose stages have all succeeded. */
function ended(harness: Harness, yaml = ONE): string {
  const { id } = harness.create(yaml);
  harness.settle();
  for (let job = harness.jobs.length; ; job++) {
    harness.credit('r1-s', 'r1', ++credits);
    harness.settle();
    const sent = harness.jobs[job];
    if (sent === undefined) return id;
    sent.answer('accepted');
    harness.result(sent.message);
    harness.settle();
  }
}

/** The same, and its end is behind the checkpoint. */
function closed(harness: Harness, yaml = ONE): string {
  const id = ended(harness, yaml);
  harness.project();
  return id;
}

function world(): Harness {
  const harness = new Harness();
  harness.session('r1-s');
  return harness;
}

function deletion(harness: Harness, runId: string, tenants: readonly string[] = ['ada']): DeleteReply[] {
  const replies: DeleteReply[] = [];
  harness.partition.delete({ runId, tenants, by: 'ada' }, (reply) => void replies.push(reply));
  return replies;
}

const codes = (replies: readonly (DeleteReply | CancelReply)[]): string[] =>
  replies.map((reply) => (reply.ok ? 'ok' : reply.code));

describe('P34: a run', () => {
  it('that is closed is deleted by a commit, and answered once a tombstone stands for it', () => {
    const harness = world();
    const id = closed(harness);
    const replies = deletion(harness, id);
    const { runs, deleted } = harness.acknowledge();
    expect(runs).toEqual([]);
    expect(deleted).toMatchObject([{ id, tenant: 'ada', event: { type: 'run_deleted', by: 'ada' } }]);
    expect([replies, harness.forgottenLogs]).toEqual([[], []]);
    harness.project();
    expect(codes(replies)).toEqual(['ok']);
    expect(harness.forgottenLogs).toEqual([id]);
    expect(codes(deletion(harness, id))).toEqual(['NOT_FOUND']);
  });

  it('that has ended is deleted once its end is behind the checkpoint (DELETIONS-1)', () => {
    const harness = world();
    const id = ended(harness);
    const replies = deletion(harness, id);
    harness.settle();
    expect(harness.appended.flatMap(({ commit }) => commit.deleted ?? [])).toEqual([]);
    harness.project();
    expect(harness.acknowledge().deleted).toMatchObject([{ id }]);
    harness.project();
    expect(codes(replies)).toEqual(['ok']);
  });

  it('that goes on is not deleted', () => {
    const harness = world();
    const { id } = harness.create(ONE);
    harness.settle();
    expect(codes(deletion(harness, id))).toEqual(['CONFLICT']);
  });

  it("of another tenant is not there, in memory, in the store and while it is deleted; nor where nobody's is", () => {
    const harness = world();
    const { id } = harness.create(ONE);
    harness.settle();
    const stored = closed(harness);
    const deleted = closed(harness);
    deletion(harness, deleted);
    for (const runId of [id, stored, deleted, harness.id()])
      expect(codes(deletion(harness, runId, ['bob']))).toEqual(['NOT_FOUND']);
    harness.mayAct = false;
    expect(deletion(harness, stored, ['bob'])).toEqual([]);
  });

  it('is deleted once, however often and while the store is away', () => {
    const harness = world();
    const id = closed(harness);
    harness.answersStoreLater = true;
    const replies = [deletion(harness, id), deletion(harness, id)];
    for (let answer = harness.storeAnswers.shift(); answer !== undefined; answer = harness.storeAnswers.shift())
      answer();
    replies.push(deletion(harness, id));
    harness.settle();
    const taken = harness.partition.takeDeleted();
    harness.partition.stillDirty([], [], [], taken);
    harness.partition.projected(harness.partition.sequence, []);
    expect(replies.flat()).toEqual([]);
    harness.project();
    expect(replies.map(codes)).toEqual([['ok'], ['ok'], ['ok']]);
    expect(harness.appended.flatMap(({ commit }) => commit.deleted ?? [])).toHaveLength(1);
    harness.standings.set(id, 'unavailable');
    const away = deletion(harness, id);
    harness.storeAnswers.pop()?.();
    expect(codes(away)).toEqual(['UNAVAILABLE']);
  });

  it('that the store still had as closed before its tombstone stood is deleted no second time (DELETIONS-4)', () => {
    const harness = world();
    const id = closed(harness);
    const before = { tenant: 'ada', parent: '', open: false };
    deletion(harness, id);
    harness.settle();
    harness.project();
    harness.standings.set(id, before);
    expect(codes(deletion(harness, id))).toEqual(['NOT_FOUND']);
    expect(harness.partition.expire([{ id, ...before }])).toBe(0);
    harness.settle();
    expect(harness.appended.flatMap(({ commit }) => commit.deleted ?? [])).toHaveLength(1);
  });

  it('is made anew by no repeated create', () => {
    const harness = world();
    const id = closed(harness);
    deletion(harness, id);
    harness.settle();
    const again = (): CreateReply[] => harness.create(ONE, { id }).replies;
    harness.stored = true;
    expect(again()).toMatchObject([{ ok: true, created: false, run: null }]);
    harness.project();
    expect(again()).toMatchObject([{ ok: true, created: false, run: null }]);
    harness.later(2 * HOUR_MS);
    expect(again()).toMatchObject([{ ok: true, created: false, run: null }]);
  });

  it('stays while another reads it, or takes over from it and has not ended (P30)', () => {
    const harness = world();
    const parent = closed(harness, text([stage('build'), stage('test', { after: ['build'] })]));
    const yaml = text([stage('build'), stage('test', { after: ['build'] })]);
    const { replies } = harness.create(yaml, { rerun: { parent, from: ['test'] } });
    expect(codes(deletion(harness, parent))).toEqual(['CONFLICT']);
    harness.answerReads();
    expect(codes(deletion(harness, parent))).toEqual(['CONFLICT']);
    harness.settle();
    expect(replies).toMatchObject([{ ok: true, created: true }]);
    const gone = deletion(harness, parent);
    harness.settle();
    harness.project();
    expect(codes(gone)).toEqual(['ok']);
  });

  it('that is decided to be deleted is run again by nobody (DELETIONS-2)', () => {
    const harness = world();
    const parent = closed(harness);
    deletion(harness, parent);
    const { replies } = harness.create(ONE, { rerun: { parent } });
    expect([replies, harness.reads]).toEqual([[], []]);
    harness.settle();
    expect(replies).toMatchObject([{ ok: false, code: 'NOT_FOUND' }]);
  });

  it('P22: what is told of changes is another when it is committed that it goes, or at the latest when lists have it no more', () => {
    const harness = world();
    const id = closed(harness);
    const changed = (): unknown => {
      let told: unknown;
      harness.partition.get({ runIds: [], changesOf: ['ada'] }, (reply) => (told = reply.ok && reply.changed));
      return told;
    };
    const before = changed();
    deletion(harness, id);
    harness.settle();
    harness.create(ONE);
    harness.settle();
    const between = changed();
    expect(between).not.toBe(before);
    harness.project();
    expect(changed()).not.toBe(between);
  });

  it('that a take-over has left out because its document is damaged is deleted although it never ended', () => {
    const id = new Harness().id();
    const standing = { tenant: 'ada', parent: '', open: true };
    const asked = (leftOut: readonly string[]): string[] => {
      const harness = new Harness({ leftOut });
      harness.standings.set(id, standing);
      const replies = deletion(harness, id);
      harness.settle();
      harness.project();
      return codes(replies);
    };
    expect(asked([id])).toEqual(['ok']);
    expect(asked([])).toEqual(['UNAVAILABLE']);
  });

  it('that a take-over has left out because its document is damaged cannot be cancelled, and says so until it is deleted', () => {
    const id = new Harness().id();
    const harness = new Harness({ leftOut: [id] });
    harness.standings.set(id, { tenant: 'ada', parent: '', open: true });
    const cancelled = (): string[] => {
      const replies: CancelReply[] = [];
      harness.partition.cancel({ runId: id, tenants: ['ada'] }, (reply) => void replies.push(reply));
      return codes(replies);
    };
    expect(cancelled()).toEqual(['CONFLICT']);
    deletion(harness, id);
    harness.settle();
    harness.project();
    expect(cancelled()).toEqual(['NOT_FOUND']);
  });

  it('that is old is deleted like any other, where it can be', () => {
    const harness = world();
    const [old, live] = [closed(harness), harness.create(ONE).id];
    const standing = { tenant: 'ada', parent: '', open: false };
    const wanted = [
      { id: old, ...standing },
      { id: live, ...standing },
      { id: harness.id(), ...standing, open: true },
    ];
    expect(harness.partition.expire(wanted)).toBe(1);
    harness.settle();
    expect(harness.appended.flatMap(({ commit }) => commit.deleted ?? [])).toMatchObject([
      { id: old, event: { by: 'retention' } },
    ]);
    expect(harness.partition.expire(wanted)).toBe(0);
  });
});

describe('P6, P34: a take-over', () => {
  it('projects a deletion that the log has behind the checkpoint, and nobody runs it again meanwhile', () => {
    const id = new Harness().id();
    const entry = { id, tenant: 'ada', event: { type: 'run_deleted', at: 1, by: 'ada' } } as const;
    const harness = new Harness({ deleted: [{ entry, sequence: 99 }] });
    const replies = deletion(harness, id);
    const { replies: rerun } = harness.create(ONE, { rerun: { parent: id } });
    expect(rerun).toMatchObject([{ ok: false, code: 'NOT_FOUND' }]);
    expect(harness.bare.takeDeleted()).toEqual([{ entry, sequence: 99 }]);
    harness.project();
    expect(codes(replies)).toEqual(['ok']);
  });
});

describe('DELETIONS-3', () => {
  const many = Array.from({ length: 1_200 });

  it('a tenant with more deletions under way than may be leaves places to others, and has its own again when they are over', () => {
    const harness = world();
    const stored = (tenant: string): string => {
      const id = harness.id({ key: tenant });
      harness.standings.set(id, { tenant, parent: '', open: false });
      return id;
    };
    const replies = many.map(() => deletion(harness, stored('ada')));
    expect(replies.flatMap(codes)).toContain('UNAVAILABLE');
    expect(codes(deletion(harness, stored('bob'), ['bob']))).toEqual([]);
    harness.settle();
    harness.project();
    expect(codes(deletion(harness, stored('ada')))).toEqual([]);
  });

  it('what is old takes no share of its tenant, and no more places than there are', () => {
    const harness = world();
    const old = many.map(() => ({ id: harness.id(), tenant: 'ada', parent: '', open: false }));
    expect([harness.partition.expire(old), harness.partition.roomToExpire]).toEqual([1_000, 0]);
    const id = harness.id();
    harness.standings.set(id, { tenant: 'ada', parent: '', open: false });
    expect(codes(deletion(harness, id))).toEqual([]);
    harness.settle();
    harness.project();
    expect(harness.partition.roomToExpire).toBe(1_000);
  });

  it('so does one that waits for more of its runs to be closed', () => {
    const harness = new Harness({ settings: { liveRunsPerKeyMax: 2_000 } });
    Object.assign(harness.load, { liveRunsMax: 2_000 });
    const endedAsItBegan = (tenant: string): string =>
      harness.create('', {
        ...{ key: tenant, tenant },
        ended: { pipelineName: 'p', status: 'SKIPPED' },
      }).id;
    const ids = many.map(() => endedAsItBegan('ada'));
    const other = endedAsItBegan('bob');
    harness.settle();
    expect(ids.flatMap((id) => codes(deletion(harness, id)))).toContain('UNAVAILABLE');
    expect(codes(deletion(harness, other, ['bob']))).toEqual([]);
  });
});
