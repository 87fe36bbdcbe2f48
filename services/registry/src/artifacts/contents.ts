/**
 * The bytes of kept files, by run and hash: `artifacts/<run>/<sha256>`. What two stages of a run leave alike is stored once;
 * nothing is shared between runs, so that a run's bytes go with it and nobody learns what another has.
 */
import { Readable } from 'node:stream';
import { BadUserInput, NotFound } from '@penstock/errors';
import { PART_BYTES, type PartAnswer } from '@penstock/artifacts';
import { HashMismatch, ObjectTooLarge, type ObjectStore } from '@penstock/object-store';
import { asUnavailable } from '../catalogue/uploads.ts';

export const ARTIFACT_PREFIX = 'artifacts/';
const SHA256 = /^[0-9a-f]{64}$/;
const RUN_ID = /^[0-9a-f-]{36}$/;

function contentKey(runId: string, sha256: string): string {
  if (!RUN_ID.test(runId) || !SHA256.test(sha256)) throw new BadUserInput('A run and a SHA-256 are to be named.');
  return `${ARTIFACT_PREFIX}${runId}/${sha256}`;
}

/** Of a key that `contentKey` has made. */
export function partsOfKey(key: string): { readonly runId: string; readonly sha256: string } {
  const [, runId = '', sha256 = ''] = key.split('/');
  return { runId, sha256 };
}

export class Contents {
  readonly #objects: ObjectStore;

  constructor(objects: ObjectStore) {
    this.#objects = objects;
  }

  async has(runId: string, sha256: string): Promise<boolean> {
    return (await orUnavailable(this.#objects.head(contentKey(runId, sha256)))) !== null;
  }

  /** Done when it is stored whole. */
  async put(runId: string, sha256: string, bytes: AsyncIterable<Uint8Array>, bytesMax: number): Promise<void> {
    await orUnavailable(this.#objects.put(contentKey(runId, sha256), bytes, { sha256, bytesMax }));
  }

  async putWhole(runId: string, sha256: string, bytes: Uint8Array): Promise<void> {
    if (await this.has(runId, sha256)) return;
    await this.put(runId, sha256, Readable.from([bytes], { objectMode: true }), bytes.length);
  }

  /** As much of it as one message carries. */
  async part(runId: string, sha256: string, offset: number): Promise<PartAnswer> {
    if (!Number.isSafeInteger(offset) || offset < 0) throw new BadUserInput("'offset' is to be a number of bytes.");
    const range = { from: offset, to: offset + PART_BYTES };
    const found = await orUnavailable(this.#objects.get(contentKey(runId, sha256), range));
    if (found === null) throw new NotFound('There is no such content.');
    const pieces = await orUnavailable(Array.fromAsync(found.bytes));
    return { data: Buffer.concat(pieces).toString('base64'), sizeBytes: found.head.size };
  }

  async whole(runId: string, sha256: string, bytesMax: number): Promise<Buffer> {
    const found = await orUnavailable(this.#objects.get(contentKey(runId, sha256), { sha256 }));
    if (found === null || found.head.size > bytesMax) throw new NotFound('There is no such content.');
    return Buffer.concat(await orUnavailable(Array.fromAsync(found.bytes)));
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
