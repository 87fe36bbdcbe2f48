/** Partitions on their way from and to a scheduler: each by itself, none for longer than it may take. */
import { machineTime } from '@penstock/async';
import { silentLogger } from '@penstock/telemetry';
import { describe, expect, it } from 'vitest';
import { PartitionMoves } from '../src/shell/partition-moves.ts';
import type { PartitionOwner } from '../src/shell/partition-owner.ts';

class Owner {
  readonly number: number;
  readonly opening = Promise.withResolvers<boolean>();
  readonly releasing: { readonly signal: AbortSignal; readonly answer: PromiseWithResolvers<boolean> }[] = [];
  isGivenUp = false;
  isForgotten = false;

  constructor(partition: number) {
    this.number = partition;
  }

  open = (): Promise<boolean> => this.opening.promise;

  giveUpOpening = (): void => {
    this.isGivenUp = true;
    this.opening.reject(new DOMException('This operation was aborted', 'AbortError'));
  };

  release = (signal: AbortSignal): Promise<boolean> => {
    const answer = Promise.withResolvers<boolean>();
    this.releasing.push({ signal, answer });
    signal.addEventListener('abort', () => answer.resolve(false));
    return answer.promise;
  };

  forget = async (): Promise<void> => {
    this.isForgotten = true;
  };
}

function world() {
  const owners: Owner[] = [];
  const mine = new Set<number>();
  const timers = new Set<{ readonly ms: number; readonly task: () => void }>();
  const over = new AbortController();
  const errors: unknown[] = [];
  const log = silentLogger();
  log.error = (...words: unknown[]) => void errors.push(words);
  const moves = new PartitionMoves({
    partitions: 3,
    log,
    time: {
      ...machineTime,
      bootNow: () => 0,
      after: (ms, task) => {
        const timer = { ms, task };
        timers.add(timer);
        return () => void timers.delete(timer);
      },
    },
    isMember: () => true,
    isMine: (partition) => mine.has(partition),
    membershipOver: () => over.signal,
    ownerFor: (partition) => {
      const owner = new Owner(partition);
      owners.push(owner);
      return owner as unknown as PartitionOwner;
    },
  });
  const turn = async (): Promise<void> => {
    moves.rebalance();
    await machineTime.turn();
  };
  /** Every wait that lasts so long at most is over. */
  const pass = async (ms: number): Promise<void> => {
    for (const timer of [...timers]) if (timers.has(timer) && timer.ms <= ms) timer.task();
    await machineTime.turn();
  };
  const of = (partition: number): Owner[] => owners.filter(({ number }) => number === partition);
  return { moves, mine, turn, pass, of, timers, errors };
}

describe('partitions on their way', () => {
  it('P3: one whose release takes for ever holds up no other, and is tried again after its time', async () => {
    const { moves, mine, turn, pass, of } = world();
    mine.add(0).add(1);
    await turn();
    for (const partition of [0, 1]) of(partition)[0]?.opening.resolve(true);
    await machineTime.turn();
    mine.delete(0);
    mine.add(2);
    await turn();
    expect(of(0)[0]?.releasing).toHaveLength(1);
    expect(of(2)).toHaveLength(1);
    of(2)[0]?.opening.resolve(true);
    await machineTime.turn();
    mine.delete(1);
    await turn();
    expect(of(1)[0]?.releasing).toHaveLength(1);
    of(1)[0]?.releasing[0]?.answer.resolve(true);
    await machineTime.turn();
    await turn();
    expect(of(0)[0]?.releasing).toHaveLength(1);
    await pass(30_000);
    await turn();
    expect(of(0)[0]?.releasing).toHaveLength(2);
    of(0)[0]?.releasing[1]?.answer.resolve(true);
    await moves.settled();
    expect([...moves.owners].map(({ number }) => number)).toEqual([2]);
    await turn();
    expect(of(1)[0]?.releasing).toHaveLength(1);
  });

  it('P3: an opening is given up where its partition is to be that of another member, and handed back', async () => {
    const { moves, mine, turn, of, errors } = world();
    mine.add(0).add(1);
    await turn();
    mine.delete(0);
    await turn();
    expect(of(0)[0]?.isGivenUp).toBe(true);
    expect(of(1)[0]?.isGivenUp).toBe(false);
    await turn();
    expect(of(0)[0]?.isForgotten).toBe(true);
    expect(errors).toEqual([]);
    expect(of(0)[0]?.releasing).toHaveLength(1);
    of(0)[0]?.releasing[0]?.answer.resolve(true);
    of(1)[0]?.opening.resolve(true);
    await moves.settled();
    expect([...moves.owners].map(({ number }) => number)).toEqual([1]);
  });

  it('P3: an opening that takes too long is begun anew', async () => {
    const { moves, mine, turn, pass, of, timers, errors } = world();
    mine.add(0);
    await turn();
    await pass(10 * 60_000);
    expect(of(0)[0]?.isGivenUp).toBe(true);
    await turn();
    expect(errors).toHaveLength(1);
    expect(of(0)).toHaveLength(2);
    of(0)[1]?.opening.resolve(true);
    await moves.settled();
    expect([...moves.owners]).toHaveLength(1);
    expect(timers.size).toBe(0);
  });
});
