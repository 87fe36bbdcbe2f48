/** How the bytes of an attempt find their way: straight to who keeps them where that is possible, else in parts by the broker. */
import { randomBytes, randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  DirectWayBroken,
  letGo,
  PART_BYTES,
  type ByAttempt,
  type DirectContent,
  type UploadPart,
} from '@penstock/artifacts';
import { NotFound, Unavailable } from '@penstock/errors';
import { StorageCalls } from '../src/artifacts/storage-calls.ts';
import type { StorageLine } from '../src/artifacts/storage-line.ts';

const by: ByAttempt = { ref: { runId: 'r', stage: 's', attempt: 1, session: 'x', credit: 1 }, partition: 0 };
const never = new AbortController().signal;
const BYTES = randomBytes(3 * PART_BYTES + 11);
const TO: DirectContent = { host: 'there', port: 1, ticket: 't', key: 'k' };

/** Who keeps bytes, with both ways to it; the straight one may break. */
class Keeper {
  readonly verbs: string[] = [];
  stored: Buffer | undefined;
  isOpen = true;
  /** After so many bytes on the straight way. */
  breaksAfter = Infinity;
  #parts: Buffer[] = [];

  readonly line: StorageLine = Object.assign(
    async (verb: string, body: unknown): Promise<unknown> => {
      const { direct, offset = 0, data } = body as Partial<UploadPart> & { readonly direct?: true };
      const name = verb.startsWith('upload.') ? 'part' : `${verb}${direct === true ? ' direct' : ''}`;
      this.verbs.push(name);
      if (name === 'part') this.#parts.push(Buffer.from(data as Uint8Array));
      if (name === 'part') this.stored = Buffer.concat(this.#parts);
      if (verb === 'open') {
        this.#parts = [];
        return direct === true ? { upload: null, direct: TO } : { upload: randomUUID() };
      }
      if (verb === 'get')
        return {
          data: Buffer.from(BYTES.subarray(offset, offset + PART_BYTES)),
          sizeBytes: BYTES.length,
          ...(direct === true ? { direct: TO } : {}),
        };
      return null;
    },
    {
      direct: {
        isOpen: true,
        send: async (_to: DirectContent, _size: number, bytes: AsyncIterable<Uint8Array>): Promise<void> => {
          const taken: Buffer[] = [];
          for await (const piece of bytes) {
            taken.push(Buffer.from(piece));
            if (Buffer.concat(taken).length > this.breaksAfter) this.#break();
          }
          this.stored = Buffer.concat(taken);
        },
        read: (): AsyncGenerator<Uint8Array, void> => this.#readStraight(),
      },
    },
  );

  async *#readStraight(): AsyncGenerator<Uint8Array, void> {
    for (let at = PART_BYTES; at < BYTES.length; at += 1_000) {
      if (at - PART_BYTES > this.breaksAfter) this.#break();
      yield BYTES.subarray(at, at + 1_000);
    }
  }

  #break(): never {
    Object.assign(this.line.direct ?? {}, { isOpen: false });
    throw new DirectWayBroken('cut');
  }
}

let keeper: Keeper;
let calls: StorageCalls;

beforeEach(() => {
  keeper = new Keeper();
  calls = new StorageCalls(keeper.line, by, never);
});

async function* content(): AsyncGenerator<Uint8Array, void> {
  for (let at = 0; at < BYTES.length; at += 70_000) yield BYTES.subarray(at, at + 70_000);
}

async function read(): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(calls.read('hash')));
}

describe('a large content', () => {
  it('goes straight, and comes straight behind its first part', async () => {
    await calls.store('hash', BYTES.length, content);
    expect(keeper.stored?.equals(BYTES)).toBe(true);
    expect((await read()).equals(BYTES)).toBe(true);
    expect(keeper.verbs).toEqual(['open direct', 'get direct']);
  });

  it('goes by the broker, from its beginning, where the straight way breaks', async () => {
    keeper.breaksAfter = 100_000;
    await calls.store('hash', BYTES.length, content);
    expect(keeper.stored?.equals(BYTES)).toBe(true);
    expect(keeper.verbs).toEqual(['open direct', 'open', 'part', 'part', 'part', 'part']);
  });

  it('comes by the broker from where the straight way has broken', async () => {
    keeper.breaksAfter = 100_000;
    expect((await read()).equals(BYTES)).toBe(true);
    expect(keeper.verbs).toEqual(['get direct', 'get', 'get']);
  });

  it('of which a part is missing is not there', async () => {
    const line: StorageLine = async (_verb, body) => ({
      data: (body as { readonly offset: number }).offset === 0 ? Buffer.from('ab') : Buffer.alloc(0),
      sizeBytes: 5,
    });
    await expect(Array.fromAsync(new StorageCalls(line, by, never).read('hash'))).rejects.toThrow(NotFound);
  });
});

async function* lent(...pieces: readonly string[]): AsyncGenerator<Uint8Array, void> {
  for (const piece of pieces) {
    const bytes = new TextEncoder().encode(piece).slice();
    yield bytes;
    letGo(bytes);
  }
}

it('a small content is stored whole also where its pieces are lent one by one', async () => {
  const asked: unknown[] = [];
  const line: StorageLine = async (...call) => {
    asked.push(call);
    return null;
  };
  await new StorageCalls(line, by, never).store('hash', 14, () => lent('first', ' and ', 'last'));
  expect(asked).toEqual([['put', { ...by, sha256: 'hash', data: Buffer.from('first and last') }]]);
});

describe('what by the word of who keeps bytes lasts longer than a stage waits', () => {
  const full = new Unavailable('no room', { retryAfterSecs: 300 });

  it('is not waited for', async () => {
    const asked: string[] = [];
    const line: StorageLine = async (verb) => {
      asked.push(verb);
      throw full;
    };
    await expect(new StorageCalls(line, by, never).begin(1, 1)).rejects.toBe(full);
    await expect(new StorageCalls(line, by, never).store('hash', 1, () => lent('a'))).rejects.toBe(full);
    await expect(new StorageCalls(line, by, never).store('hash', BYTES.length, content)).rejects.toBe(full);
    expect(asked).toEqual(['begin', 'put', 'open']);
  });

  it('ends a large content on its way, which is not begun anew', async () => {
    const asked: string[] = [];
    const byBroker: StorageLine = async (verb) => {
      asked.push(verb.replace(/\..*/, ''));
      if (verb !== 'open') throw full;
      return { upload: 'u' };
    };
    await expect(new StorageCalls(byBroker, by, never).store('hash', BYTES.length, content)).rejects.toBe(full);
    expect(asked.filter((verb) => verb === 'open')).toHaveLength(1);
    Object.assign(keeper.line.direct ?? {}, { send: () => Promise.reject(full) });
    await expect(calls.store('hash', BYTES.length, content)).rejects.toBe(full);
    expect(keeper.verbs).toEqual(['open direct']);
  });

  it('is told from what passes, which is asked for again', async () => {
    let asked = 0;
    const line: StorageLine = Object.assign(
      async () => {
        if (++asked < 3) throw new Unavailable('away');
        return null;
      },
      { time: { bootNow: () => 0, pause: async () => {} } },
    );
    await new StorageCalls(line, by, never).begin(1, 1);
    expect(asked).toBe(3);
  });
});
