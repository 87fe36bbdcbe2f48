import { describe, expect, it } from 'vitest';
import type { AppendResult, LogEntry, PartitionLog } from '@penstock/bus';
import { viewOf, type RunEvent } from '@penstock/run';
import {
  COMMIT_FORMAT,
  decodeCommit,
  encodeCommit,
  handBack,
  LiveRun,
  loadPartition,
  openPartition,
  type Commit,
  type Opening,
  type RunEntry,
} from '@penstock/scheduler/testing';
import type { Checkpoint, EncodedRun, RunDocument, RunsLedger } from '@penstock/store';
import { encodeEvent } from '../src/run/commit.ts';
import { definitions, NOW, settings, stage, text } from './support.ts';

const yaml = text([stage('a'), stage('b')]);
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
const story: readonly RunEvent[] = [created, queued, started];

/** A log and a store in memory, and a member that wants the partition. */
class Place implements PartitionLog {
  readonly partition = 0;
  readonly subject = 'journal.0';
  entries: LogEntry[] = [];
  readonly documents = new Map<string, RunDocument>();
  point: Checkpoint | null = null;
  readonly living = new Set<string>();
  /** Told before each read of the checkpoint. */
  beforeCheckpoint = (): void => {};
  #ids = 0;
  #sequence = 10;

  opening(member = 'me'): Opening {
    this.living.add(member);
    return {
      partition: 0,
      member,
      log: this,
      ledger: this.#ledger,
      signal: new AbortController().signal,
      isGone: async (other) => !this.living.has(other),
      now: () => NOW,
      newCommitId: () => `c${++this.#ids}`,
    };
  }

  add(
    kind: Commit['kind'],
    more: {
      readonly owner?: string;
      readonly epoch?: number;
      readonly number?: number;
      readonly runs?: readonly RunEntry[];
    } = {},
  ): LogEntry {
    const { owner = 'old', epoch = 1, number = this.entries.length + 1, runs = [] } = more;
    const head = { id: `x${++this.#ids}`, kind, partition: 0, epoch, number, owner, minReader: COMMIT_FORMAT, at: NOW };
    const entry = {
      sequence: ++this.#sequence,
      commitId: head.id,
      bytes: encodeCommit(
        head,
        runs.map(({ id, from, events }) => ({ id, from, events: events.map(encodeEvent) })),
      ),
    };
    this.entries.push(entry);
    return entry;
  }

  document(id: string, events: readonly RunEvent[], sequence: number, more: Partial<RunDocument> = {}): void {
    const { state } = LiveRun.restore(
      id,
      definitions.find(yaml).definition,
      { events: [...events], sequence: 0 },
      settings,
    );
    this.documents.set(id, {
      partition: 0,
      open: true,
      incarnation: 1,
      sequence,
      state,
      events,
      view: viewOf(state),
      ...more,
    });
  }

  commits(): Commit[] {
    return this.entries.map(({ bytes }) => decodeCommit(bytes));
  }

  async last(): Promise<LogEntry | null> {
    return this.entries.at(-1) ?? null;
  }

  async *read(fromSequence: number): AsyncIterable<LogEntry> {
    yield* this.entries.filter(({ sequence }) => sequence >= fromSequence);
  }

  async append(
    bytes: Uint8Array,
    { commitId, expectedSequence }: { readonly commitId: string; readonly expectedSequence: number },
  ): Promise<AppendResult> {
    const last = this.entries.at(-1) ?? null;
    if ((last?.sequence ?? 0) !== expectedSequence) return { ok: false, kind: 'deposed', last };
    this.entries.push({ sequence: ++this.#sequence, commitId, bytes });
    return { ok: true, sequence: this.#sequence };
  }

  async purgeTo(): Promise<{ purged: number }> {
    return { purged: 0 };
  }

  async bytesUsedRatio(): Promise<number> {
    return 0;
  }

  readonly #ledger: RunsLedger = {
    saveBatch: async (_documents: readonly (RunDocument | EncodedRun)[]) => ({ stale: [] }),
    checkpoint: async () => {
      this.beforeCheckpoint();
      return this.point;
    },
    saveCheckpoint: async () => 'saved',
    openOf: () => this.#where(({ open }) => open),
    laterThan: (_partition, { incarnation, sequence }) =>
      this.#where(
        (document) =>
          document.incarnation > incarnation || (document.incarnation === incarnation && document.sequence > sequence),
      ),
    getAsOwner: async (id) => this.documents.get(id) ?? null,
    exists: async () => new Set(),
    saveCounters: async () => {},
    counter: async () => null,
    async *countersOf() {},
  };

  async *#where(matches: (document: RunDocument) => boolean): AsyncIterable<RunDocument> {
    yield* [...this.documents.values()].filter(matches);
  }
}

async function takeOver(place: Place): Promise<readonly LiveRun[]> {
  const opening = place.opening();
  const opened = await openPartition(opening);
  if (opened === null) throw new Error('not opened');
  return (await loadPartition(opened, opening, { definitions, settings, log: { error: () => {} } })).runs;
}

describe('opening a partition (P3)', () => {
  it('an empty log is opened with epoch 1', async () => {
    const place = new Place();
    expect(await openPartition(place.opening())).toMatchObject({ epoch: 1, incarnation: 1, commitNumber: 1 });
    expect(place.commits()).toMatchObject([{ kind: 'opened', owner: 'me', number: 1 }]);
  });

  it("a living owner's partition is not, one that was released or whose owner is gone is", async () => {
    const place = new Place();
    place.living.add('old');
    place.add('opened');
    expect(await openPartition(place.opening())).toBeNull();
    place.add('released');
    expect(await openPartition(place.opening())).toMatchObject({ epoch: 2, commitNumber: 3 });
    place.living.delete('me');
    expect(await openPartition(place.opening('other'))).toMatchObject({ epoch: 3 });
  });

  it('who is faster has it: the expectation is the very commit that was read', async () => {
    const place = new Place();
    place.add('released');
    const opening = place.opening();
    place.beforeCheckpoint = () => {
      place.beforeCheckpoint = () => {};
      place.add('opened', { owner: 'faster', epoch: 2 });
    };
    expect(await openPartition(opening)).toBeNull();
  });
});

describe('handing a partition back (P3)', () => {
  it('ends with `released`, after which another opens it at once', async () => {
    const place = new Place();
    const opened = await openPartition(place.opening());
    expect(await handBack(place.opening(), opened ?? undefined)).toBe(true);
    expect(place.commits().at(-1)).toMatchObject({ kind: 'released', owner: 'me', epoch: 1, number: 2 });
    expect(await openPartition(place.opening('other'))).toMatchObject({ epoch: 2 });
  });

  it('a partition that was opened and never loaded is handed back too', async () => {
    const place = new Place();
    await openPartition(place.opening());
    expect(await handBack(place.opening(), undefined)).toBe(true);
    expect(place.commits().at(-1)?.kind).toBe('released');
  });

  it("what is another's, or released already, is left alone", async () => {
    const place = new Place();
    expect(await handBack(place.opening(), undefined)).toBe(true);
    place.add('opened', { owner: 'other' });
    expect(await handBack(place.opening(), undefined)).toBe(true);
    place.add('released', { owner: 'me' });
    expect(await handBack(place.opening(), undefined)).toBe(true);
    expect(place.entries).toHaveLength(2);
  });
});

describe('what is read back (P6)', () => {
  it('the log alone, where nothing was projected', async () => {
    const place = new Place();
    place.add('opened');
    place.add('runs', { runs: [{ id: 'run1', from: 1, events: [created, queued] }] });
    place.add('runs', { runs: [{ id: 'run1', from: 3, events: [started] }] });
    const [run] = await takeOver(place);
    expect(run?.events).toEqual(story);
    expect(run?.state.stages[0]?.live).toMatchObject({ session: 's' });
  });

  it('documents, and the commits behind their checkpoint; what both tell is told once', async () => {
    const place = new Place();
    const first = place.add('opened');
    place.add('runs', { runs: [{ id: 'run1', from: 1, events: [created, queued] }] });
    const late = place.add('runs', { runs: [{ id: 'run1', from: 3, events: [started] }] });
    place.point = { partition: 0, incarnation: 1, sequence: first.sequence, commit: 1 };
    place.document('run1', story, late.sequence);
    const runs = await takeOver(place);
    expect(runs.map(({ events }) => events)).toEqual([story]);
  });

  it('an open run that no commit behind the checkpoint speaks of', async () => {
    const place = new Place();
    const last = place.add('runs');
    place.point = { partition: 0, incarnation: 1, sequence: last.sequence, commit: 1 };
    place.document('run1', story, last.sequence);
    place.document('run2', story, last.sequence, { open: false });
    expect((await takeOver(place)).map(({ id }) => id)).toEqual(['run1']);
  });

  it('begins anew where the first commit behind the checkpoint is not the next', async () => {
    const place = new Place();
    place.add('opened');
    const second = place.add('runs', { runs: [{ id: 'run1', from: 1, events: [created, queued] }] });
    place.add('runs', { runs: [{ id: 'run1', from: 3, events: [started] }] });
    place.point = { partition: 0, incarnation: 1, sequence: place.entries[0]?.sequence ?? 0, commit: 1 };
    const opening = place.opening();
    const opened = await openPartition(opening);
    // A late projector moves the checkpoint and purges behind it, between our reading it and the log.
    let reads = 0;
    place.beforeCheckpoint = () => {
      if (++reads !== 2) return;
      place.document('run1', [created, queued], second.sequence);
      place.point = { partition: 0, incarnation: 1, sequence: second.sequence, commit: 2 };
    };
    place.entries.splice(0, 2);
    const runs =
      opened && (await loadPartition(opened, opening, { definitions, settings, log: { error: () => {} } })).runs;
    expect(reads).toBe(2);
    expect(runs?.map(({ events }) => events)).toEqual([story]);
  });

  it('a run that this build cannot restore comes with its attempts, and its cause', async () => {
    const place = new Place();
    place.add('runs', {
      runs: [{ id: 'run1', from: 1, events: [{ ...created, yaml: 'newer: text' }, queued, started] }],
    });
    const [run] = await takeOver(place);
    expect(run?.restoreError).toContain('1:1 no pipeline');
    expect(run?.state.liveAttempts).toBe(1);
  });
});

describe('the store is ahead of the log', () => {
  const ahead = (): Place => {
    const place = new Place();
    place.add('opened');
    const last = place.add('runs', { runs: [{ id: 'run1', from: 1, events: [created, queued] }] });
    place.document('run1', story, last.sequence + 5);
    place.point = { partition: 0, incarnation: 1, sequence: last.sequence + 5, commit: 7 };
    return place;
  };

  it('opens a new incarnation from the documents, with epochs above all earlier ones', async () => {
    const place = ahead();
    const opening = place.opening();
    const opened = await openPartition(opening);
    expect(opened).toMatchObject({ incarnation: 2, epoch: 2_000_000_000, commitNumber: 3 });
    const runs =
      opened && (await loadPartition(opened, opening, { definitions, settings, log: { error: () => {} } })).runs;
    expect(runs?.map(({ events }) => events)).toEqual([story]);
    // Written as the old sequence, the run's next documents would count as old.
    expect(runs?.[0]?.committedSequence).toBe(opened?.sequence);
  });

  it('the incarnation is not forgotten while nothing of it is in the store', async () => {
    const place = ahead();
    await openPartition(place.opening());
    for (let count = 0; count < 10; count++) place.add('runs', { owner: 'me', epoch: 2_000_000_000 });
    expect(await openPartition(place.opening())).toMatchObject({ incarnation: 2, epoch: 2_000_000_001 });
  });

  it("what was lost of a run's commits is read from its document, also when that is closed since", async () => {
    const place = ahead();
    await openPartition(place.opening());
    const end: RunEvent = { type: 'run_cancelled', at: NOW, cancelledStages: 2 };
    const gone: RunEvent = { type: 'attempt_gone', at: NOW, stage: 'a', attempt: 1 };
    const last = place.add('runs', {
      owner: 'me',
      epoch: 2_000_000_000,
      runs: [{ id: 'run1', from: 4, events: [end, gone] }],
    });
    place.document('run1', [...story, end, gone], last.sequence, { open: false, incarnation: 2 });
    place.point = { partition: 0, incarnation: 2, sequence: last.sequence + 5, commit: 9 };
    const runs = await takeOver(place);
    expect(runs.map(({ events }) => events.length)).toEqual([5]);
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
