/** What the partitions' logs say, read past all services: every commit, and of each run its events in order. */
import { openLog, type Bus } from '@penstock/bus';
import { isRunId, type RunEvent } from '@penstock/run';
import { decodeCommit, type Commit } from '@penstock/scheduler/testing';

export interface JournaledRun {
  readonly id: string;
  readonly partition: number;
  readonly events: RunEvent[];
  /** Of each event: what its owner's clock said when it was committed. The moment in an event is never before the one ahead of it. */
  readonly committedAt?: number[];
}

export class Journal {
  readonly commits: Commit[] = [];
  readonly runs = new Map<string, JournaledRun>();
  /** What no log may contain, in words. */
  readonly faults: string[] = [];
  readonly #bus: Bus;
  readonly #partitions: number;
  readonly #next: number[];
  readonly #last: (Commit | undefined)[];

  constructor(bus: Bus, partitions: number) {
    this.#bus = bus;
    this.#partitions = partitions;
    this.#next = Array.from({ length: partitions }, () => 1);
    this.#last = Array.from({ length: partitions });
  }

  /** Takes in what has been added since the last call. */
  async read(signal?: AbortSignal): Promise<void> {
    await Promise.all(Array.from({ length: this.#partitions }, (_, partition) => this.#readOne(partition, signal)));
  }

  async #readOne(partition: number, signal: AbortSignal | undefined): Promise<void> {
    for await (const { sequence, bytes } of openLog(this.#bus, partition).read(this.#next[partition] ?? 1, signal)) {
      this.#next[partition] = sequence + 1;
      this.take(decodeCommit(bytes));
    }
  }

  /** Of one partition in their order. */
  take(commit: Commit): void {
    const { partition, number, epoch, owner, kind } = commit;
    const before = this.#last[partition];
    const where = `commit ${number} of partition ${partition}`;
    if (before !== undefined && number !== before.number + 1) this.faults.push(`${where} follows ${before.number}`);
    if (before !== undefined && kind === 'opened' && epoch <= before.epoch)
      this.faults.push(`${where} opens epoch ${epoch} after ${before.epoch}`);
    if (kind !== 'opened' && (before?.epoch !== epoch || before.owner !== owner || before.kind === 'released'))
      this.faults.push(`${where} is of epoch ${epoch}, which its owner does not hold (P1)`);
    this.#last[partition] = commit;
    this.commits.push(commit);
    for (const { id, from, events } of commit.runs) this.#takeRun(commit, id, from, events);
  }

  #takeRun({ partition, at }: Commit, id: string, from: number, events: readonly RunEvent[]): void {
    let run = this.runs.get(id);
    if (run === undefined) {
      run = { id, partition, events: [], committedAt: [] };
      this.runs.set(id, run);
      if (!isRunId(id)) this.faults.push(`'${id}' is no run id`);
    }
    if (from !== run.events.length + 1) this.faults.push(`run ${id}: version ${from} follows ${run.events.length}`);
    run.events.push(...events);
    run.committedAt?.push(...events.map(() => at));
  }
}

/** Ended, and every attempt confirmed gone. */
export function isOver(run: JournaledRun): boolean {
  return endOf(run) !== undefined && liveAttempts(run) === 0;
}

/** The status with which it ended; undefined: it has not. */
export function endOf(run: JournaledRun): string | undefined {
  for (const event of run.events) {
    if (event.type === 'run_completed') return event.status;
    if (event.type === 'run_cancelled') return 'CANCELLED';
    if (event.type === 'run_quarantined') return 'QUARANTINED';
  }
  return undefined;
}

function liveAttempts(run: JournaledRun): number {
  let live = 0;
  for (const event of run.events) {
    if (event.type === 'stage_started') live += 1;
    else if (event.type === 'stage_returned' || event.type === 'stage_retrying' || event.type === 'attempt_gone')
      live -= 1;
    else if (event.type === 'stage_completed' && event.attempt > 0) live -= 1;
  }
  return live;
}
