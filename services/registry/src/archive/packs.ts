/**
 * Packs of archived logs in the object storage: `log-packs/<ab>/<pack>.<n>`, each with runs of one tenant. A pack is one object, or
 * several where a run's log is large; nothing in it says whose it is, the pointers alone do.
 */
import { BadUserInput, NotFound } from '@penstock/errors';
import type { ArchivedLog } from '@penstock/store';
import type { ObjectHead, ObjectStore } from '@penstock/object-store';
import { asUnavailable } from '../catalogue/uploads.ts';

const PACK_PREFIX = 'log-packs/';
const PACK = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const OBJECTS_MAX = 1_000_000;
/** Larger than any frame. */
const READ_BYTES_MAX = 4 * 1024 * 1024;

export interface PackPart {
  readonly pack: string;
  readonly object: number;
  readonly from: number;
  readonly bytes: number;
}

export function packKey(pack: string, object: number): string {
  return `${PACK_PREFIX}${pack.slice(0, 2)}/${pack}.${object}`;
}

/** Undefined: the key is not one of a pack. */
export function packOfKey(key: string): { readonly pack: string; readonly object: number } | undefined {
  const [, , name = ''] = key.split('/');
  const [pack = '', object = ''] = name.split('.');
  return PACK.test(pack) && /^\d{1,7}$/.test(object) ? { pack, object: Number(object) } : undefined;
}

export class Packs {
  readonly #objects: ObjectStore;

  constructor(objects: ObjectStore) {
    this.#objects = objects;
  }

  /** For a gateway, which has seen who asks. Throws NotFound where the pack is gone or lacks it, Unavailable. */
  async part({ pack, object, from, bytes }: PackPart): Promise<Buffer> {
    const numbers = [object, from, bytes].every((each) => Number.isSafeInteger(each) && each >= 0);
    if (!PACK.test(pack) || !numbers || object > OBJECTS_MAX || bytes > READ_BYTES_MAX)
      throw new BadUserInput('A pack and a part of it are to be named.');
    try {
      const found = await this.#objects.get(packKey(pack, object), { from, to: from + bytes });
      if (found === null) throw new NotFound('There is no such pack of logs.');
      const read = Buffer.concat(await Array.fromAsync(found.bytes));
      if (read.length !== bytes) throw new NotFound('The pack of logs is shorter.');
      return read;
    } catch (error) {
      throw asUnavailable(error);
    }
  }

  /** Whether all that the pointer names is there; looked at anew by each call but for what `known` has. */
  async holds(log: Pick<ArchivedLog, 'pack' | 'frames'>, known: Map<string, number>): Promise<boolean> {
    const ends = new Map<number, number>();
    for (const [object, from, bytes] of log.frames) ends.set(object, Math.max(ends.get(object) ?? 0, from + bytes));
    for (const [object, end] of ends) {
      const key = packKey(log.pack, object);
      let size = known.get(key);
      if (size === undefined) known.set(key, (size = (await this.#objects.head(key))?.size ?? 0));
      if (size < end) return false;
    }
    return true;
  }

  /** Of all its objects. */
  async sizeOf(pack: string, objects: number): Promise<number> {
    let size = 0;
    for (let object = 0; object < objects; object++)
      size += (await this.#objects.head(packKey(pack, object)))?.size ?? 0;
    return size;
  }

  async *list(): AsyncGenerator<ObjectHead, void> {
    yield* this.#objects.list(PACK_PREFIX);
  }

  async remove(key: string): Promise<void> {
    await this.#objects.delete(key);
  }
}
