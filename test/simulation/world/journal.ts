/**
 * A partition's log as a scheduler reaches it: libs/bus's rules for retries and refusals (P1, P2) over the simulated
 * broker, where requests and answers are lost and late.
 */
import { backoffMs, withoutJitter } from '@penstock/async';
import {
  MessageTooLarge,
  type AppendOptions,
  type AppendResult,
  type LogEntry,
  type LogOptions,
  type PartitionLog,
} from '@penstock/bus';
import { SimOutage } from './errors.ts';
import { MESSAGE_BYTES_MAX } from './sim-bus.ts';
import type { Network } from './network.ts';
import type { SimNode } from './sim-node.ts';
import type { World } from './world.ts';

const TRY_MS = 4_000;
const LARGE_BYTES = 256 * 1024;
/** Of a batch: a log is read in several. */
const READ_COMMITS = 40;
const BACKOFF = { firstMs: 100, maxMs: 2_000, random: withoutJitter };
/** A log that ends before the expectation is believed after as many reads. */
const BEHIND_READS = 5;

export class SimPartitionLog implements PartitionLog {
  readonly partition: number;
  readonly subject: string;
  readonly #network: Network;
  readonly #world: World;
  readonly #node: SimNode;
  readonly #onTrouble: NonNullable<LogOptions['onTrouble']>;
  #appending = false;

  constructor(network: Network, node: SimNode, partition: number, options: LogOptions = {}) {
    this.#network = network;
    this.#world = network.world;
    this.#node = node;
    this.partition = partition;
    this.#onTrouble = options.onTrouble ?? (() => {});
    this.subject = `journal.${partition}`;
  }

  last(signal?: AbortSignal): Promise<LogEntry | null> {
    return this.#world.abortable(signal, (resolve) => this.#last(signal, 1, resolve));
  }

  async *read(fromSequence: number, signal?: AbortSignal): AsyncIterable<LogEntry> {
    const last = await this.last(signal);
    if (last === null) return;
    for (let next = fromSequence; next <= last.sequence;) {
      const from = next;
      const batch = await this.#world.abortable<readonly LogEntry[]>(signal, (resolve) =>
        this.#repeat(signal, 1, () => this.#batch(from), resolve),
      );
      for (const entry of batch) {
        if (entry.sequence > last.sequence) return;
        yield entry;
        next = entry.sequence + 1;
      }
      if (batch.length > 0) continue;
      // A commit at or after `from` exists: a replica without it is behind.
      await this.#world.pause(this.#node, BACKOFF.firstMs, signal);
      signal?.throwIfAborted();
      if (((await this.last(signal))?.sequence ?? 0) < next) return;
    }
  }

  append(bytes: Uint8Array, options: AppendOptions, signal?: AbortSignal): Promise<AppendResult> {
    if (bytes.length > MESSAGE_BYTES_MAX)
      return Promise.reject(new MessageTooLarge(this.subject, bytes.length, MESSAGE_BYTES_MAX));
    if (bytes.length > LARGE_BYTES) this.#world.mark('commit near the limit of a message');
    this.#world.check(!this.#appending, 'P1', `a second append to ${this.subject} while one is in flight`);
    this.#appending = true;
    return this.#world
      .abortable<AppendResult>(signal, (resolve) =>
        this.#try(bytes, options, signal, 1, 0, (result) => {
          if (result.ok) this.#world.witness.acknowledged(this.partition, bytes, options.commitId, result.sequence);
          resolve(result);
        }),
      )
      .finally(() => {
        this.#appending = false;
      });
  }

  purgeTo(sequenceExclusive: number): Promise<{ readonly purged: number }> {
    if (this.#world.mutation === 'keeps-quiet-journals') return Promise.resolve({ purged: 0 });
    return this.#world.promise((resolve, reject) =>
      this.#network.askBroker(
        this.#node,
        (broker) => broker.purge(this.partition, sequenceExclusive),
        TRY_MS,
        (purged) => {
          if (typeof purged !== 'number') reject(new SimOutage('no answer to the purge'));
          else resolve({ purged });
        },
      ),
    );
  }

  async bytesUsedRatio(): Promise<number> {
    return this.#world.journalUsed;
  }

  /** As some replica has it. */
  #batch(from: number): readonly LogEntry[] {
    const after = this.#replica().filter(({ sequence }) => sequence >= from);
    return after.slice(0, READ_COMMITS);
  }

  #replica(): readonly LogEntry[] {
    const { random, profile, healed } = this.#world;
    const isBehind = !healed && random.chance(profile.staleReplica);
    if (!isBehind) return this.#network.broker.log(this.partition);
    this.#world.mark('journal read from a replica that is behind');
    return this.#network.broker.logAsOf(this.partition, random.between(0, profile.staleMs));
  }

  #try(
    bytes: Uint8Array,
    options: AppendOptions,
    signal: AbortSignal | undefined,
    attempt: number,
    behind: number,
    done: (result: AppendResult) => void,
  ): void {
    const { commitId, expectedSequence } = options;
    this.#network.askBroker(
      this.#node,
      (broker) => broker.append(this.partition, bytes, commitId, expectedSequence),
      TRY_MS,
      (answer) => {
        if (signal?.aborted === true) return;
        if (typeof answer === 'number') {
          done({ ok: true, sequence: answer });
          return;
        }
        this.#world.mark(answer === undefined ? 'append without answer' : 'append refused');
        if (answer === 'full') this.#world.mark('append to a full broker');
        const error = new SimOutage(answer ?? 'no answer');
        this.#onTrouble({ kind: answer === 'full' ? 'full' : 'unavailable', operation: 'append', attempt, error });
        this.#last(signal, 1, (last) => {
          if (last?.commitId === commitId) {
            this.#world.mark('append recognised by its commit id');
            done({ ok: true, sequence: last.sequence });
            return;
          }
          const lastSequence = last?.sequence ?? 0;
          const isBehind = answer === 'refused' && lastSequence < expectedSequence;
          if (lastSequence > expectedSequence || (isBehind && behind + 1 >= BEHIND_READS)) {
            this.#world.mark(isBehind ? 'owner finds its log cut' : 'owner deposed');
            done({ ok: false, kind: 'deposed', last });
            return;
          }
          this.#node.after(backoffMs(attempt, BACKOFF), () => {
            if (signal?.aborted !== true)
              this.#try(bytes, options, signal, attempt + 1, isBehind ? behind + 1 : 0, done);
          });
        });
      },
    );
  }

  #last(signal: AbortSignal | undefined, attempt: number, done: (last: LogEntry | null) => void): void {
    const read = (): LogEntry | null =>
      (this.#world.mutation === 'journal-of-any-replica'
        ? this.#replica()
        : this.#network.broker.log(this.partition)
      ).at(-1) ?? null;
    this.#repeat(signal, attempt, read, done);
  }

  #repeat<T>(signal: AbortSignal | undefined, attempt: number, read: () => T, done: (answer: T) => void): void {
    this.#network.askBroker(this.#node, read, TRY_MS, (answer) => {
      if (signal?.aborted === true) return;
      if (answer !== undefined) done(answer);
      else
        this.#node.after(backoffMs(attempt, BACKOFF), () => {
          if (signal?.aborted !== true) this.#repeat(signal, attempt + 1, read, done);
        });
    });
  }
}
