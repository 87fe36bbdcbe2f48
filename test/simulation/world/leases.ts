/** A lease as libs/bus keeps it (P5): compare-and-set on its own last revision, and silence is no answer: read, then conclude. */
import type { Bucket } from './broker.ts';
import type { Network } from './network.ts';
import type { SimNode } from './sim-node.ts';
import type { World } from './world.ts';

export type WriteResult =
  | { readonly kind: 'accepted'; readonly sentAt: number }
  | { readonly kind: 'lost' }
  | { readonly kind: 'unanswered' };

const TRY_MS = 2_000;

interface Written {
  readonly write: number;
  readonly value: unknown;
}

export class SimLease {
  /** When the last accepted write was sent. */
  sentAt = 0;
  over = false;
  busy = false;
  readonly #network: Network;
  readonly #world: World;
  readonly #node: SimNode;
  readonly #bucket: Bucket;
  readonly #key: string;
  readonly #ttlMs: number;
  readonly #sentAts = new Map<number, number>();
  #revision = 0;
  #writes = 0;

  constructor(network: Network, node: SimNode, bucket: Bucket, key: string, ttlMs: number) {
    this.#network = network;
    this.#world = network.world;
    this.#node = node;
    this.#bucket = bucket;
    this.#key = key;
    this.#ttlMs = ttlMs;
  }

  write(value: unknown, done: (result: WriteResult) => void): void {
    const write = ++this.#writes;
    const sentAt = this.#world.now;
    this.#sentAts.set(write, sentAt);
    this.busy = true;
    const written: Written = { write, value };
    const expected = this.#revision;
    this.#network.askBroker(
      this.#node,
      (broker) => broker.put(this.#bucket, this.#key, written, this.#ttlMs, expected),
      TRY_MS,
      (revision) => {
        if (typeof revision === 'number') this.#accepted(revision, write, done);
        else this.#readBack(done);
      },
    );
  }

  release(): void {
    this.over = true;
    this.#network.askBroker(
      this.#node,
      (broker) => broker.delete(this.#bucket, this.#key, this.#revision),
      TRY_MS,
      () => {},
    );
  }

  #accepted(revision: number, write: number, done: (result: WriteResult) => void): void {
    this.busy = false;
    this.#revision = revision;
    this.sentAt = this.#sentAts.get(write) ?? 0;
    for (const known of this.#sentAts.keys()) if (known <= write) this.#sentAts.delete(known);
    done({ kind: 'accepted', sentAt: this.sentAt });
  }

  #readBack(done: (result: WriteResult) => void): void {
    this.#world.mark('lease read back');
    this.#network.askBroker(
      this.#node,
      (broker) => broker.get(this.#bucket, this.#key) ?? null,
      TRY_MS,
      (entry) => {
        if (entry === undefined) {
          this.busy = false;
          done({ kind: 'unanswered' });
        } else if (entry === null) {
          this.busy = false;
          this.over = this.#revision > 0;
          done(this.over ? { kind: 'lost' } : { kind: 'unanswered' });
        } else if (entry.revision > this.#revision)
          this.#accepted(entry.revision, (entry.value as Written).write, done);
        else {
          this.busy = false;
          done({ kind: 'unanswered' });
        }
      },
    );
  }
}

export function leased<V>(value: unknown): V {
  return (value as Written).value as V;
}
