/** The port to the storage of objects, as one process of a world has it. */
import { createHash } from 'node:crypto';
import {
  HashMismatch,
  ObjectDamaged,
  ObjectsUnavailable,
  type ObjectHead,
  type ObjectStore,
  type StoredObject,
} from '@penstock/object-store';
import type { Network } from './network.ts';
import type { SimNode } from './sim-node.ts';
import type { SimStorage } from './storage.ts';

/** Keys in one answer to a list. */
const PAGE = 8;

export class SimObjects implements ObjectStore {
  readonly #network: Network;
  readonly #node: SimNode;

  constructor(network: Network, node: SimNode) {
    this.#network = network;
    this.#node = node;
  }

  async put(
    key: string,
    source: AsyncIterable<Uint8Array>,
    expected: { readonly sha256: string },
  ): Promise<ObjectHead> {
    const bytes = Buffer.concat(await Array.fromAsync(source, (piece) => Buffer.from(piece)));
    const actual = sumOf(bytes);
    if (actual !== expected.sha256) throw new HashMismatch(expected.sha256, actual);
    return await this.#ask((storage) => {
      const stored = { bytes, storedAt: this.#network.world.wallClock() };
      if (storage.objects.has(key)) this.#network.world.mark('content stored again');
      storage.objects.set(key, stored);
      return headOf(key, stored);
    });
  }

  head(key: string): Promise<ObjectHead | null> {
    return this.#ask(({ objects }) => {
      const found = objects.get(key);
      return found === undefined ? null : headOf(key, found);
    });
  }

  async get(key: string, options: Parameters<ObjectStore['get']>[1] = {}): Promise<StoredObject | null> {
    const found = await this.#ask(({ objects }) => objects.get(key) ?? null);
    if (found === null) return null;
    const { from, to, sha256 } = options;
    const { bytes } = found;
    const read = async function* (): AsyncGenerator<Uint8Array, void> {
      if (sha256 !== undefined && sumOf(bytes) !== sha256) throw new ObjectDamaged(key, 'it is not what was put there');
      yield Buffer.from(bytes.subarray(from, to));
    };
    return { head: headOf(key, found), bytes: read() };
  }

  delete(key: string): Promise<boolean> {
    const { world } = this.#network;
    return this.#ask(({ objects }) => {
      if (!objects.has(key)) return false;
      world.witness.objectDeleted(key);
      world.trace(() => `${this.#node.name} deletes ${key}`);
      return objects.delete(key);
    });
  }

  async *list(prefix: string): AsyncGenerator<ObjectHead, void> {
    for (let after = ''; ;) {
      const from = after;
      const page = await this.#ask(({ objects }) =>
        [...objects]
          .filter(([key]) => key.startsWith(prefix) && key > from)
          .map(([key, found]) => headOf(key, found))
          .toSorted((a, b) => (a.key < b.key ? -1 : 1))
          .slice(0, PAGE),
      );
      yield* page;
      if (page.length < PAGE) return;
      after = page.at(-1)?.key ?? '';
    }
  }

  async removeLeftovers(): Promise<number> {
    return 0;
  }

  async ping(): Promise<void> {}

  async checkRoom(): Promise<void> {}

  #ask<T>(work: (storage: SimStorage) => T): Promise<T> {
    return this.#network.world.promise((resolve, reject) =>
      this.#network.askStorage(this.#node, work, resolve, ({ message }) => reject(new ObjectsUnavailable(message))),
    );
  }
}

function headOf(
  key: string,
  { bytes, storedAt }: { readonly bytes: Uint8Array; readonly storedAt: number },
): ObjectHead {
  return { key, size: bytes.length, storedAt };
}

export function sumOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
