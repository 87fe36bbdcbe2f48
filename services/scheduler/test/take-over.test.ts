import { machineTime } from '@penstock/async';
import { describe, expect, it } from 'vitest';
import type { RunEvent, ScheduleEvent } from '@penstock/run';
import { handBack, type LiveRun, loadPartition, openPartition, type Opening } from '@penstock/scheduler/testing';
import { StoredPartition, yaml } from './stored-partition.ts';
import { definitions, NOW, settings } from './support.ts';

const created: RunEvent = {
  type: 'run_created',
  at: NOW,
  tenant: 'ada',
  key: 'ada',
  pipelineName: 'ship',
  yaml,
  priority: 0,
  origin: { kind: 'api' },
};
const queued: RunEvent = { type: 'stages_queued', at: NOW, stages: ['a', 'b'] };
const started: RunEvent = {
  type: 'stage_started',
  at: NOW,
  stage: 'a',
  attempt: 1,
  runner: 'r',
  session: 's',
  credit: 1,
};
const history: readonly RunEvent[] = [created, queued, started];

async function takeOver(
  stored: StoredPartition,
  log: Parameters<typeof loadPartition>[2]['log'] = { error: () => {} },
): Promise<readonly LiveRun[]> {
  const opening = stored.opening();
  const opened = await openPartition(opening);
  if (opened === null) throw new Error('not opened');
  return (await loadPartition(opened, opening, { definitions, settings, log })).runs;
}

describe('opening a partition (P3)', () => {
  it('an empty log is opened with epoch 1', async () => {
    const stored = new StoredPartition();
    expect(await openPartition(stored.opening())).toMatchObject({ epoch: 1, incarnation: 1, commitNumber: 1 });
    expect(stored.commits()).toMatchObject([{ kind: 'opened', owner: 'me', number: 1 }]);
  });

  it("a living owner's partition is not, one that was released or whose owner is gone is", async () => {
    const stored = new StoredPartition();
    stored.living.add('old');
    stored.add('opened');
    expect(await openPartition(stored.opening())).toBeNull();
    stored.add('released');
    expect(await openPartition(stored.opening())).toMatchObject({ epoch: 2, commitNumber: 3 });
    stored.living.delete('me');
    expect(await openPartition(stored.opening('other'))).toMatchObject({ epoch: 3 });
  });

  it('who is faster has it: the expectation is the very commit that was read', async () => {
    const stored = new StoredPartition();
    stored.add('released');
    const opening = stored.opening();
    stored.beforeCheckpoint = () => {
      stored.beforeCheckpoint = () => {};
      stored.add('opened', { owner: 'faster', epoch: 2 });
    };
    expect(await openPartition(opening)).toBeNull();
  });
});

describe('an opening that is given up (P3)', () => {
  /** While its append is under way; `stored`: when the broker stores it, if ever. */
  async function givenUp(partition: StoredPartition, stored: Promise<void>, after: Opening['after']) {
    const begun = Promise.withResolvers<void>();
    partition.beforeAppend = () => (begun.resolve(), stored);
    const giveUp = new AbortController();
    const opened = openPartition({ ...partition.opening(), after, signal: giveUp.signal });
    await begun.promise;
    giveUp.abort(new Error('given up'));
    partition.beforeAppend = () => Promise.resolve();
    return opened;
  }

  it('waits for what its append comes to: what is stored late is handed back', async () => {
    const partition = new StoredPartition();
    const broker = Promise.withResolvers<void>();
    setImmediate(() => broker.resolve());
    expect(await givenUp(partition, broker.promise, machineTime.after)).toMatchObject({ epoch: 1 });
    expect(await handBack(partition.opening(), undefined)).toBe(true);
    expect(partition.commits().at(-1)).toMatchObject({ kind: 'released', owner: 'me' });
  });

  it('waits for a moment only, where the broker does not answer', async () => {
    const partition = new StoredPartition();
    const waits: number[] = [];
    const after: Opening['after'] = (milliseconds, task) => (waits.push(milliseconds), setImmediate(task), () => {});
    await expect(givenUp(partition, new Promise(() => {}), after)).rejects.toThrow('given up');
    expect(waits).toEqual([2_000]);
  });

  it('before its append appends nothing', async () => {
    const partition = new StoredPartition();
    const giveUp = new AbortController();
    partition.beforeCheckpoint = () => giveUp.abort(new Error('given up'));
    await expect(openPartition({ ...partition.opening(), signal: giveUp.signal })).rejects.toThrow('given up');
    expect(partition.entries).toEqual([]);
  });
});

describe('handing a partition back (P3)', () => {
  it('ends with `released`, after which another opens it at once', async () => {
    const stored = new StoredPartition();
    const opened = await openPartition(stored.opening());
    expect(await handBack(stored.opening(), opened ?? undefined)).toBe(true);
    expect(stored.commits().at(-1)).toMatchObject({ kind: 'released', owner: 'me', epoch: 1, number: 2 });
    expect(await openPartition(stored.opening('other'))).toMatchObject({ epoch: 2 });
  });

  it('a partition that was opened and never loaded is handed back too', async () => {
    const stored = new StoredPartition();
    await openPartition(stored.opening());
    expect(await handBack(stored.opening(), undefined)).toBe(true);
    expect(stored.commits().at(-1)?.kind).toBe('released');
  });

  it("what is another's, or released already, is left alone", async () => {
    const stored = new StoredPartition();
    expect(await handBack(stored.opening(), undefined)).toBe(true);
    stored.add('opened', { owner: 'other' });
    expect(await handBack(stored.opening(), undefined)).toBe(true);
    stored.add('released', { owner: 'me' });
    expect(await handBack(stored.opening(), undefined)).toBe(true);
    expect(stored.entries).toHaveLength(2);
  });
});

describe('what is read back (P6)', () => {
  it('is read no further once the opening is given up, also where the log has lost its end', async () => {
    const stored = new StoredPartition();
    stored.add('opened');
    stored.add('runs', { runs: ['run1', 'run2'].map((id) => ({ id, from: 1, events: [created, queued] })) });
    const giveUp = new AbortController();
    const opening = { ...stored.opening(), signal: giveUp.signal };
    const opened = await openPartition(opening);
    const asked: string[] = [];
    stored.documents.get = (id) => {
      asked.push(id);
      giveUp.abort(new Error('given up'));
      return undefined;
    };
    const shared = { definitions, settings, log: { error: () => {} } };
    await expect(opened && loadPartition(opened, opening, shared)).rejects.toThrow('given up');
    expect(asked).toEqual(['run1']);
  });

  it('the log alone, where nothing was projected', async () => {
    const stored = new StoredPartition();
    stored.add('opened');
    stored.add('runs', { runs: [{ id: 'run1', from: 1, events: [created, queued] }] });
    stored.add('runs', { runs: [{ id: 'run1', from: 3, events: [started] }] });
    const [run] = await takeOver(stored);
    expect(run?.events).toEqual(history);
    expect(run?.state.stages.get(0)?.live).toMatchObject({ session: 's' });
  });

  it('the text of each run where it is read elsewhere, none on this thread', async () => {
    const stored = new StoredPartition();
    stored.add('opened');
    stored.add('runs', {
      runs: ['run1', 'run2'].map((id) => ({ id, from: 1, events: [created, queued] })),
    });
    const opening = stored.opening();
    const opened = await openPartition(opening);
    const read: string[] = [];
    const nowhere = { find: () => expect.unreachable('a text was read on this thread') };
    const loaded =
      opened &&
      (await loadPartition(opened, opening, {
        definitions: nowhere,
        settings,
        log: { error: () => {} },
        read: async (run) => {
          read.push(run.yaml);
          return definitions;
        },
      }));
    expect(read).toEqual([yaml, yaml]);
    expect(loaded?.runs.map(({ state }) => state.stages.length)).toEqual([2, 2]);
  });

  it('documents, and the commits behind their checkpoint; what both tell is told once', async () => {
    const stored = new StoredPartition();
    const first = stored.add('opened');
    stored.add('runs', { runs: [{ id: 'run1', from: 1, events: [created, queued] }] });
    const late = stored.add('runs', { runs: [{ id: 'run1', from: 3, events: [started] }] });
    stored.point = { partition: 0, incarnation: 1, sequence: first.sequence, commit: 1 };
    stored.document('run1', history, late.sequence);
    const runs = await takeOver(stored);
    expect(runs.map(({ events }) => events)).toEqual([history]);
  });

  it('an open run that no commit behind the checkpoint speaks of', async () => {
    const stored = new StoredPartition();
    const last = stored.add('runs');
    stored.point = { partition: 0, incarnation: 1, sequence: last.sequence, commit: 1 };
    stored.document('run1', history, last.sequence);
    stored.document('run2', history, last.sequence, { open: false });
    expect((await takeOver(stored)).map(({ id }) => id)).toEqual(['run1']);
  });

  it('begins anew where the first commit behind the checkpoint is not the next', async () => {
    const stored = new StoredPartition();
    stored.add('opened');
    const second = stored.add('runs', { runs: [{ id: 'run1', from: 1, events: [created, queued] }] });
    stored.add('runs', { runs: [{ id: 'run1', from: 3, events: [started] }] });
    stored.point = { partition: 0, incarnation: 1, sequence: stored.entries[0]?.sequence ?? 0, commit: 1 };
    const opening = stored.opening();
    const opened = await openPartition(opening);
    // A late projector moves the checkpoint and purges behind it, between our reading it and the log.
    let reads = 0;
    stored.beforeCheckpoint = () => {
      if (++reads !== 2) return;
      stored.document('run1', [created, queued], second.sequence);
      stored.point = { partition: 0, incarnation: 1, sequence: second.sequence, commit: 2 };
    };
    stored.entries.splice(0, 2);
    const runs =
      opened && (await loadPartition(opened, opening, { definitions, settings, log: { error: () => {} } })).runs;
    expect(reads).toBe(2);
    expect(runs?.map(({ events }) => events)).toEqual([history]);
  });

  it('begins anew where runs of the missing commits came into the store behind its back: no later commit speaks of them', async () => {
    const stored = new StoredPartition();
    stored.add('opened');
    const second = stored.add('runs', { runs: [{ id: 'run1', from: 1, events: [created, queued] }] });
    stored.add('runs', { runs: [{ id: 'run2', from: 1, events: [created, queued] }] });
    stored.point = { partition: 0, incarnation: 1, sequence: stored.entries[0]?.sequence ?? 0, commit: 1 };
    const opening = stored.opening();
    const opened = await openPartition(opening);
    // The documents have been read; what a late projector writes and purges now stands in none of them.
    stored.beforeRead = () => {
      stored.beforeRead = () => {};
      stored.document('run1', [created, queued], second.sequence);
      stored.point = { partition: 0, incarnation: 1, sequence: second.sequence, commit: 2 };
      stored.entries.splice(0, 2);
    };
    const runs =
      opened && (await loadPartition(opened, opening, { definitions, settings, log: { error: () => {} } })).runs;
    expect(runs?.map(({ id }) => id).toSorted()).toEqual(['run1', 'run2']);
  });

  it('a run that this build cannot restore comes with its attempts, and its cause', async () => {
    const stored = new StoredPartition();
    stored.add('runs', {
      runs: [{ id: 'run1', from: 1, events: [{ ...created, yaml: 'newer: text' }, queued, started] }],
    });
    const [run] = await takeOver(stored);
    expect(run?.restoreError).toContain('1:1 no pipeline');
    expect(run?.state.liveAttempts).toBe(1);
  });
});

describe('a schedule whose document is damaged', () => {
  const unreadable = new SyntaxError('damaged');
  const file: Extract<ScheduleEvent, { type: 'schedule_set' }> = {
    type: 'schedule_set',
    at: 1,
    tenant: 'service',
    key: 'service/o/r',
    provider: 'git_host_a',
    repository: 'o/r',
    delivery: { sequence: 2, storedAt: 5 },
    ref: 'refs/heads/main',
    commit: 'c'.repeat(40),
    cloneUrl: 'https://host.example/o/r.git',
    source: 'nightly.yml',
    text: '',
    idKey: 'k',
    lines: [{ id: 'line', cron: '* * * * *' }],
  };
  const paused: ScheduleEvent = { type: 'line_paused', at: 1, line: 'line' };
  const restored = async (...events: readonly ScheduleEvent[]) => {
    const stored = new StoredPartition();
    const { sequence } = stored.add('runs');
    stored.point = { partition: 0, incarnation: 1, sequence, commit: 1 };
    stored.schedules.push({ id: 'damaged', unreadable });
    for (const event of events) stored.add('runs', { schedules: [{ id: 'damaged', events: [event] }] });
    const named: unknown[] = [];
    const opening = stored.opening();
    const opened = await openPartition(opening);
    const log = { error: ({ schedule }: { schedule?: string }) => void named.push(schedule) };
    const loaded = opened && (await loadPartition(opened, opening, { definitions, settings, log }));
    expect(named).toEqual(['damaged']);
    return loaded?.schedules;
  };

  it('costs itself alone, also where the log goes on with it, and is named', async () => {
    expect(await restored()).toEqual([]);
    expect(await restored(paused)).toEqual([]);
  });

  it('goes on with the next file that the log has of it', async () => {
    expect(await restored(paused, file, paused)).toMatchObject([
      { state: { id: 'damaged', lines: [{ id: 'line', from: 5, paused: true }] }, isDirty: true },
    ]);
  });
});

describe('a document that is damaged', () => {
  const others = { id: 'whole', from: 1, events: [created, queued] };

  it('costs its own run alone, also where the log goes on with it, and is named', async () => {
    const stored = new StoredPartition();
    const { sequence } = stored.add('runs', { runs: [{ id: 'run1', from: 1, events: [created] }] });
    stored.document('run1', [created, queued], sequence);
    stored.damaged.add('run1');
    stored.point = { partition: 0, incarnation: 1, sequence, commit: 1 };
    stored.add('runs', { runs: [{ id: 'run1', from: 3, events: [started] }, others] });
    const named: unknown[] = [];
    const runs = await takeOver(stored, { error: ({ runId }: { runId?: string }) => void named.push(runId) });
    expect(runs.map(({ id }) => id)).toEqual(['whole']);
    expect(named).toEqual(['run1']);
  });

  it('costs nothing where the log has all of the run', async () => {
    const stored = new StoredPartition();
    stored.point = { partition: 0, incarnation: 1, sequence: stored.add('opened').sequence, commit: 1 };
    const { sequence } = stored.add('runs', { runs: [{ id: 'run1', from: 1, events: [created, queued] }] });
    stored.document('run1', [created, queued], sequence);
    stored.damaged.add('run1');
    stored.add('runs', { runs: [{ id: 'run1', from: 3, events: [started] }] });
    expect((await takeOver(stored)).map(({ events }) => events)).toEqual([history]);
  });

  it('costs nothing in a partition that was never projected to its end: its log has all', async () => {
    const stored = new StoredPartition();
    stored.add('opened');
    const { sequence } = stored.add('runs', { runs: [{ id: 'run1', from: 1, events: [created, queued] }] });
    stored.document('run1', [created, queued], sequence);
    stored.damaged.add('run1');
    expect((await takeOver(stored)).map(({ id }) => id)).toEqual(['run1']);
  });

  it('is named to who takes over, unless the log has its run', async () => {
    const stored = new StoredPartition();
    const { sequence } = stored.add('runs', { runs: [others] });
    for (const id of ['lost', 'whole']) {
      stored.document(id, [created, queued], sequence);
      stored.damaged.add(id);
    }
    const opening = stored.opening();
    const opened = await openPartition(opening);
    const loaded =
      opened && (await loadPartition(opened, opening, { definitions, settings, log: { error: () => {} } }));
    expect(loaded).toMatchObject({ leftOut: ['lost'], runs: [{ id: 'whole' }] });
  });

  it.each([true, false])(
    'does not have its run executed again where the log has lost its end, open or not (%s)',
    async (open) => {
      const stored = new StoredPartition();
      stored.document('run1', history, 30, { open });
      stored.document('other', [created, queued], 29);
      stored.damaged.add('run1');
      stored.point = { partition: 0, incarnation: 1, sequence: 30, commit: 20 };
      stored.add('runs', { runs: [{ id: 'run1', from: 1, events: [created, queued] }] });
      expect((await takeOver(stored)).map(({ id }) => id)).toEqual(['other']);
    },
  );
});

describe('the store is ahead of the log', () => {
  const ahead = (): StoredPartition => {
    const stored = new StoredPartition();
    stored.add('opened');
    const last = stored.add('runs', { runs: [{ id: 'run1', from: 1, events: [created, queued] }] });
    stored.document('run1', history, last.sequence + 5);
    stored.point = { partition: 0, incarnation: 1, sequence: last.sequence + 5, commit: 7 };
    return stored;
  };

  it('opens a new incarnation from the documents, with epochs above all earlier ones', async () => {
    const stored = ahead();
    const opening = stored.opening();
    const opened = await openPartition(opening);
    expect(opened).toMatchObject({ incarnation: 2, epoch: 2_000_000_000, commitNumber: 3 });
    const runs =
      opened && (await loadPartition(opened, opening, { definitions, settings, log: { error: () => {} } })).runs;
    expect(runs?.map(({ events }) => events)).toEqual([history]);
    // Written as the old sequence, the run's next documents would count as old.
    expect(runs?.[0]?.committedSequence).toBe(opened?.sequence);
  });

  it('the incarnation is not forgotten while nothing of it is in the store', async () => {
    const stored = ahead();
    await openPartition(stored.opening());
    for (let count = 0; count < 10; count++) stored.add('runs', { owner: 'me', epoch: 2_000_000_000 });
    expect(await openPartition(stored.opening())).toMatchObject({ incarnation: 2, epoch: 2_000_000_001 });
  });

  it("what was lost of a run's commits is read from its document, also when that is closed since", async () => {
    const stored = ahead();
    await openPartition(stored.opening());
    const end: RunEvent = { type: 'run_cancelled', at: NOW, cancelledStages: 2 };
    const gone: RunEvent = { type: 'attempt_gone', at: NOW, stage: 'a', attempt: 1 };
    const last = stored.add('runs', {
      owner: 'me',
      epoch: 2_000_000_000,
      runs: [{ id: 'run1', from: 4, events: [end, gone] }],
    });
    stored.document('run1', [...history, end, gone], last.sequence, { open: false, incarnation: 2 });
    stored.point = { partition: 0, incarnation: 2, sequence: last.sequence + 5, commit: 9 };
    const runs = await takeOver(stored);
    expect(runs.map(({ events }) => events.length)).toEqual([5]);
  });

  it.each([4, 6])('what has ended beyond the end of the log goes on nowhere, checkpoint at %d', async (checkpoint) => {
    const stored = new StoredPartition();
    stored.add('opened');
    const last = stored.add('runs', { runs: [{ id: 'run1', from: 1, events: [created, queued] }] });
    const end: RunEvent = { type: 'run_cancelled', at: NOW, cancelledStages: 2 };
    const gone: RunEvent = { type: 'attempt_gone', at: NOW, stage: 'a', attempt: 1 };
    const stopped: RunEvent = { type: 'run_stopped', at: NOW, status: 'CANCELLED', cancelledStages: 2 };
    stored.document('run1', [...history, end, gone, stopped], last.sequence + 5, { open: false });
    stored.point = { partition: 0, incarnation: 1, sequence: last.sequence + checkpoint, commit: 2 + checkpoint };
    expect((await takeOver(stored)).filter(({ settled }) => !settled)).toEqual([]);
  });

  it('is known by a document alone, and by a checkpoint that the log has grown past', async () => {
    const byDocument = ahead();
    byDocument.point = null;
    expect(await openPartition(byDocument.opening())).toMatchObject({ incarnation: 2 });
    const grown = ahead();
    grown.documents.clear();
    grown.point = { partition: 0, incarnation: 1, sequence: grown.point?.sequence ?? 0, commit: 9 };
    for (let count = 0; count < 10; count++) grown.add('runs');
    expect(await openPartition(grown.opening())).toMatchObject({ incarnation: 2 });
  });
});

describe('P34: runs that are deleted', () => {
  const end: RunEvent = { type: 'run_cancelled', at: NOW, cancelledStages: 2 };
  const gone: RunEvent = { type: 'attempt_gone', at: NOW, stage: 'a', attempt: 1 };

  it('behind the checkpoint are told to the new owner, which writes their tombstones', async () => {
    const stored = new StoredPartition();
    stored.add('opened');
    stored.document('run1', [...history, end, gone], 1, { open: false });
    stored.point = { partition: 0, incarnation: 1, sequence: stored.add('runs').sequence, commit: 2 };
    const last = stored.add('runs', { deleted: ['run1'] });
    const opening = stored.opening();
    const opened = await openPartition(opening);
    if (opened === null) throw new Error('not opened');
    const loaded = await loadPartition(opened, opening, { definitions, settings, log: { error: () => {} } });
    expect(loaded.runs).toEqual([]);
    expect(loaded.deleted).toMatchObject([{ entry: { id: 'run1', tenant: 'ada' }, sequence: last.sequence }]);
  });

  it('stay deleted where the log has lost that, and has the runs', async () => {
    const stored = new StoredPartition();
    stored.add('opened');
    stored.add('runs', { runs: [{ id: 'run1', from: 1, events: [created, queued] }] });
    const last = stored.add('runs', { runs: [{ id: 'run2', from: 4, events: [end, gone] }] });
    stored.point = { partition: 0, incarnation: 1, sequence: last.sequence + 5, commit: 9 };
    stored.tombstones.add('run1').add('run2');
    expect(await takeOver(stored)).toEqual([]);
  });
});
