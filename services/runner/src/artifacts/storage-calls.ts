/**
 * The bytes that an attempt leaves, on their way to the service that keeps them: every call is repeated while the service is away,
 * for storing twice is storing once. What by the service's own word lasts longer than a stage waits is not waited for.
 */
import { backoffMs, machineTime, type Time } from '@penstock/async';
import { NotFound, Unavailable } from '@penstock/errors';
import {
  DirectWayBroken,
  PART_BYTES,
  readContent,
  type BeginRequest,
  type ByAttempt,
  type DirectContent,
  type GetRequest,
  type OpenUploadAnswer,
  type OpenUploadRequest,
  type PartAnswer,
  type PutRequest,
  type SealAnswer,
  type SealRequest,
  type UploadPart,
} from '@penstock/artifacts';
import type { StorageLine } from './storage-line.ts';

/** A service that is away for longer fails the stage. */
const AWAY_MS_MAX = 120_000;
const BACKOFF = { firstMs: 200, maxMs: 5_000 };
/** Parts of one content under way: enough that the disk at the other end never waits. */
const PARTS_AT_ONCE = 4;
/** What was begun anew so often is stopped for good. */
const BEGINNINGS_MAX = 5;

export class StorageCalls {
  readonly #line: StorageLine;
  readonly #by: ByAttempt;
  readonly #signal: AbortSignal;
  readonly #verbs: string;
  readonly #time: Pick<Time, 'bootNow' | 'pause'>;

  /** `verbs`: in front of each verb. */
  constructor(line: StorageLine, by: ByAttempt, signal: AbortSignal, verbs: '' | 'cache-' = '') {
    this.#line = line;
    this.#time = line.time ?? machineTime;
    this.#verbs = verbs;
    this.#by = by;
    this.#signal = signal;
  }

  /** Any other question. */
  async ask<Req extends ByAttempt, Rep>(verb: string, body: Omit<Req, keyof ByAttempt>): Promise<Rep> {
    return await this.#patiently<Req, Rep>(this.#verb(verb), { ...this.#by, ...body } as Req);
  }

  async begin(files: number, bytes: number): Promise<void> {
    await this.#patiently<BeginRequest, null>(this.#verb('begin'), { ...this.#by, files, bytes });
  }

  /** `bytes` is read anew where the storing has to begin again. */
  async store(sha256: string, sizeBytes: number, bytes: () => AsyncIterable<Uint8Array>): Promise<void> {
    if (sizeBytes <= PART_BYTES) {
      // Each piece may be lent until the next one is asked for.
      const data = Buffer.concat(await Array.fromAsync(bytes(), (piece) => Buffer.from(piece)));
      await this.#patiently<PutRequest, null>(this.#verb('put'), { ...this.#by, sha256, data });
      return;
    }
    for (let beginning = 1; ; beginning += 1) {
      try {
        return await this.#upload(sha256, sizeBytes, bytes());
      } catch (error) {
        if (!(error instanceof NotFound) || beginning >= BEGINNINGS_MAX) throw error;
        await this.#time.pause(this.#waitMs(beginning), this.#signal);
      }
    }
  }

  async seal(manifest: Uint8Array): Promise<SealAnswer> {
    const request = { ...this.#by, manifest: Buffer.from(manifest).toString('base64') };
    return await this.#patiently<SealRequest, SealAnswer>(this.#verb('seal'), request);
  }

  /** The content with this hash of the attempt's run or of another, or of the scope of a cache; the caller checks it. */
  async *read(
    sha256: string,
    of: { readonly scope?: string; readonly run?: string | undefined } = {},
  ): AsyncGenerator<Uint8Array, void> {
    const part = async (offset: number, direct: true | undefined): Promise<PartAnswer> => {
      const request = { ...this.#by, ...of, sha256, offset, raw: true, direct } as const;
      return await this.#patiently<GetRequest, PartAnswer>(this.#verb('get'), request);
    };
    const content = { part, from: 0, partsAtOnce: PARTS_AT_ONCE, way: this.#line.direct, signal: this.#signal };
    let given = 0;
    let size = 0;
    for await (const { bytes, sizeBytes } of readContent(content)) {
      size = sizeBytes;
      given += bytes.length;
      yield bytes;
    }
    if (given < size) throw new NotFound('A part of the content is missing.');
  }

  async #upload(sha256: string, sizeBytes: number, bytes: AsyncIterable<Uint8Array>): Promise<void> {
    const opened = await this.#patiently<OpenUploadRequest, OpenUploadAnswer>(this.#verb('open'), {
      ...this.#by,
      sha256,
      sizeBytes,
      direct: this.#line.direct?.isOpen === true ? true : undefined,
    });
    if (opened.direct !== undefined) return await this.#send(opened.direct, sizeBytes, bytes);
    if (opened.upload === null) return;
    const verb = `upload.${opened.upload}`;
    let offset = 0;
    const underway: Promise<unknown>[] = [];
    for await (const part of inParts(bytes, sizeBytes)) {
      this.#signal.throwIfAborted();
      const { length } = part;
      const sent = this.#line(verb, { offset, data: part } satisfies UploadPart);
      // Whoever fails first is thrown below.
      sent.catch(() => {});
      underway.push(sent);
      offset += length;
      if (underway.length >= PARTS_AT_ONCE) await anew(underway.shift());
    }
    for (const sent of underway) await anew(sent);
    if (offset < sizeBytes) throw new NotFound('The file has become shorter while it was read.');
  }

  async #send(to: DirectContent, sizeBytes: number, bytes: AsyncIterable<Uint8Array>): Promise<void> {
    try {
      await this.#line.direct?.send(to, sizeBytes, bytes, this.#signal);
    } catch (error) {
      throw error instanceof DirectWayBroken ? cutOff(error) : begunAnew(error);
    }
  }

  #waitMs(tries: number): number {
    const { random } = this.#line;
    return backoffMs(tries, random === undefined ? BACKOFF : { ...BACKOFF, random });
  }

  #verb(verb: string): string {
    return `${this.#verbs}${verb}`;
  }

  async #patiently<Req, Rep>(verb: string, body: Req): Promise<Rep> {
    const begun = this.#time.bootNow();
    for (let tries = 1; ; tries += 1) {
      this.#signal.throwIfAborted();
      try {
        return (await this.#line(verb, body)) as Rep;
      } catch (error) {
        if (!isPassing(error) || this.#time.bootNow() - begun > AWAY_MS_MAX) throw error;
        await this.#time.pause(this.#waitMs(tries), this.#signal);
      }
    }
  }
}

/** Worth waiting for with a stage's slot. */
function isPassing(error: unknown): boolean {
  return error instanceof Unavailable && error.retryAfterSecs * 1_000 <= AWAY_MS_MAX;
}

async function anew(sent: Promise<unknown> | undefined): Promise<void> {
  try {
    await sent;
  } catch (error) {
    throw begunAnew(error);
  }
}

/** A process that took parts and is gone: what it had goes with it. */
function begunAnew(error: unknown): unknown {
  return isPassing(error) ? cutOff(error) : error;
}

function cutOff(cause: unknown): NotFound {
  return new NotFound('The upload was cut off.', {}, { cause });
}

/** Each has a memory of its own, and nobody keeps it: it may be given away. */
async function* inParts(bytes: AsyncIterable<Uint8Array>, sizeBytes: number): AsyncGenerator<Uint8Array, void> {
  let left = sizeBytes;
  const next = (): Uint8Array => new Uint8Array(Math.max(1, Math.min(PART_BYTES, left)));
  let part = next();
  let filled = 0;
  for await (const piece of bytes) {
    for (let at = 0; at < piece.length;) {
      const taken = Math.min(part.length - filled, piece.length - at);
      part.set(piece.subarray(at, at + taken), filled);
      filled += taken;
      at += taken;
      if (filled < part.length) continue;
      left -= filled;
      yield part;
      part = next();
      filled = 0;
    }
  }
  if (filled > 0) yield part.slice(0, filled);
}
