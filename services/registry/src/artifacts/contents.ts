/**
 * The bytes of kept files, by run and hash: `artifacts/<run>/<sha256>`. What two stages of a run leave alike is stored once;
 * nothing is shared between runs, so that a run's bytes go with it and nobody learns what another has. Those of caches, by scope
 * and hash: `caches/<scope>/<sha256>`.
 */
import { Readable } from 'node:stream';
import { FairTurns } from '@penstock/async';
import { BadUserInput, NotFound, Unavailable } from '@penstock/errors';
import { PART_BYTES, type PartAnswer, type PartRequest } from '@penstock/artifacts';
import { HashMismatch, ObjectDamaged, ObjectTooLarge, type ObjectHead, type ObjectStore } from '@penstock/object-store';
import { PARTS_AT_ONCE } from '../catalogue/parts-at-once.ts';
import { asUnavailable } from '../catalogue/uploads.ts';
import type { DirectDoor } from './direct-door.ts';

export const ARTIFACT_PREFIX = 'artifacts/';
export const CACHE_PREFIX = 'caches/';
/** Of one tenant its thousand runners with a few requests each; beyond, they come again. */
const PARTS_WAITING = { perKeyMax: 10_000, keysMax: 100_000 };
const SHA256 = /^[0-9a-f]{64}$/;
const OWNERS = { 'artifacts/': /^[0-9a-f-]{36}$/, 'caches/': SHA256 } as const;

/** Of a key that these contents have made. */
export function partsOfKey(key: string): { readonly owner: string; readonly sha256: string } {
  const [, owner = '', sha256 = ''] = key.split('/');
  return { owner, sha256 };
}

export class Contents {
  readonly #objects: ObjectStore;
  readonly #prefix: keyof typeof OWNERS;
  readonly #door: Pick<DirectDoor, 'toGet'> | undefined;
  /** In turns of who asks. */
  readonly #parts = new FairTurns({
    atOnce: PARTS_AT_ONCE,
    waiting: { ...PARTS_WAITING, refusal: () => new Unavailable('Too much is being read at the moment; try again.') },
  });

  /** `door`: for those who can read straight. */
  constructor(objects: ObjectStore, prefix: keyof typeof OWNERS, door?: Pick<DirectDoor, 'toGet'>) {
    this.#door = door;
    this.#objects = objects;
    this.#prefix = prefix;
  }

  async has(owner: string, sha256: string): Promise<boolean> {
    return (await this.head(owner, sha256)) !== null;
  }

  async head(owner: string, sha256: string): Promise<ObjectHead | null> {
    return await orUnavailable(this.#objects.head(this.#keyOf(owner, sha256)));
  }

  /** Where nothing can be stored, that is said before the bytes come. @throws Unavailable */
  async checkRoom(): Promise<void> {
    await orUnavailable(this.#objects.checkRoom());
  }

  /** Done when it is stored whole. */
  async put(owner: string, sha256: string, bytes: AsyncIterable<Uint8Array>, bytesMax: number): Promise<void> {
    await orUnavailable(this.#objects.put(this.#keyOf(owner, sha256), bytes, { sha256, bytesMax }));
  }

  /** `counting`: calls what it is given, if so much may be stored. */
  async putWhole(
    owner: string,
    sha256: string,
    bytes: Uint8Array,
    counting: (work: () => Promise<void>) => Promise<void>,
  ): Promise<void> {
    if (await this.has(owner, sha256)) return;
    await counting(() => this.put(owner, sha256, Readable.from([bytes], { objectMode: true }), bytes.length));
  }

  /** As much of it as one message carries. `tenant`: who asks; '': a gateway. */
  part(owner: string, request: Omit<PartRequest, 'runId'>, tenant: string): Promise<PartAnswer> {
    return this.#parts.run(tenant, () => this.#read(owner, request, tenant));
  }

  async #read(
    owner: string,
    { sha256, offset, raw, direct: canGoStraight }: Omit<PartRequest, 'runId'>,
    tenant: string,
  ): Promise<PartAnswer> {
    if (!Number.isSafeInteger(offset) || offset < 0) throw new BadUserInput("'offset' is to be a number of bytes.");
    const range = { from: offset, to: offset + PART_BYTES };
    const found = await orUnavailable(this.#objects.get(this.#keyOf(owner, sha256), range));
    if (found === null) throw new NotFound('There is no such content.');
    const pieces = await orUnavailable(Array.fromAsync(found.bytes));
    const bytes = pieces.length === 1 ? Buffer.from(pieces[0] as Uint8Array) : Buffer.concat(pieces);
    const { size } = found.head;
    const end = offset + bytes.length;
    const direct =
      canGoStraight === true && end < size
        ? this.#door?.toGet(tenant, size - end, () => this.read(owner, sha256, { from: end, to: size }))
        : undefined;
    return { data: raw === true ? bytes : bytes.toString('base64'), sizeBytes: size, direct };
  }

  /** Unchecked: whoever reads all of it sums it up. */
  async *read(
    owner: string,
    sha256: string,
    range: { readonly from: number; readonly to: number },
  ): AsyncGenerator<Uint8Array, void> {
    const found = await orUnavailable(this.#objects.get(this.#keyOf(owner, sha256), range));
    if (found === null) throw new NotFound('There is no such content.');
    try {
      yield* found.bytes;
    } catch (error) {
      throw asUnavailable(error);
    }
  }

  async whole(owner: string, sha256: string, bytesMax: number): Promise<Buffer> {
    const found = await orUnavailable(this.#objects.get(this.#keyOf(owner, sha256), { sha256 }));
    if (found === null || found.head.size > bytesMax) throw new NotFound('There is no such content.');
    return Buffer.concat(await orUnavailable(Array.fromAsync(found.bytes)));
  }

  /** Whether it is there, and what was put there. */
  async isWhole(owner: string, sha256: string): Promise<boolean> {
    try {
      const found = await this.#objects.get(this.#keyOf(owner, sha256), { sha256 });
      if (found === null) return false;
      for await (const _ of found.bytes);
      return true;
    } catch (error) {
      if (error instanceof ObjectDamaged) return false;
      throw asUnavailable(error);
    }
  }

  async remove(owner: string, sha256: string): Promise<void> {
    await orUnavailable(this.#objects.delete(this.#keyOf(owner, sha256)));
  }

  #keyOf(owner: string, sha256: string): string {
    if (!OWNERS[this.#prefix].test(owner) || !SHA256.test(sha256))
      throw new BadUserInput('A run, or the scope of a cache, and a SHA-256 are to be named.');
    return `${this.#prefix}${owner}/${sha256}`;
  }
}

async function orUnavailable<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof HashMismatch || error instanceof ObjectTooLarge) throw new BadUserInput(error.message);
    throw asUnavailable(error);
  }
}
