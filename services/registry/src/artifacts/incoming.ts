/**
 * Large contents on their way in, a message at a time. It owns each until it is stored, or nothing has come for a while.
 *
 *  INCOMING-1 Parts are taken in order; what came before is taken again without harm, what is ahead is refused.
 *  INCOMING-2 At most UPLOADS_MAX are under way, half of them of one tenant, with WAITING_MAX parts of each in memory. Who sends a part a minute
 *     keeps its place.
 *  INCOMING-3 One that ends early, for whatever reason, leaves nothing that can be seen.
 */
import { randomUUID } from 'node:crypto';
import { Counts } from '@penstock/async';
import { letGo, PART_BYTES, type OpenUploadAnswer, type OpenUploadRequest, type UploadPart } from '@penstock/artifacts';
import type { Bus, BusSubscription } from '@penstock/bus';
import { BadUserInput, NotFound, Unavailable } from '@penstock/errors';
import { answerCalls } from '@penstock/service';
import type { DirectDoor, Storing } from './direct-door.ts';

const UPLOADS_MAX = 32;
const UPLOADS_OF_TENANT_MAX = UPLOADS_MAX / 2;
const WAITING_MAX = 8;
/** Without a part for so long its sender is gone. */
const IDLE_MS_MAX = 60_000;

export class IncomingUploads {
  readonly #uploads = new Map<string, Upload>();
  readonly #byTenant = new Counts();
  readonly #door: Pick<DirectDoor, 'toPut'> | undefined;

  /** `door`: for those who can go straight. */
  constructor(door?: Pick<DirectDoor, 'toPut'>) {
    this.#door = door;
  }

  /** What a runner sends comes to this very process. */
  listen(
    bus: Bus,
    { runner, tenant }: { readonly runner: string; readonly tenant: string },
    { sizeBytes, direct: canGoStraight }: Pick<OpenUploadRequest, 'sizeBytes' | 'direct'>,
    store: Storing,
  ): OpenUploadAnswer {
    const direct = canGoStraight === true ? this.#door?.toPut(tenant, sizeBytes, store) : undefined;
    if (direct !== undefined) return { upload: null, direct };
    // Empty where the bus is closed and takes no subscription: then it is over when nothing has come for a while.
    const listening: BusSubscription[] = [];
    const upload = this.#begin(tenant, sizeBytes, store, () => listening.pop()?.stop());
    const take = ({ offset, data }: UploadPart): Promise<void> => this.take(upload, offset, decoded(data));
    listening.push(answerCalls(bus, 'registry', { [`upload.${runner}.${upload}`]: take }));
    return { upload };
  }

  /** The id by which its parts come. `forget` is called once when it is over. */
  #begin(tenant: string, sizeBytes: number, store: Storing, forget: () => void): string {
    if (this.#uploads.size >= UPLOADS_MAX || this.#byTenant.of(tenant) >= UPLOADS_OF_TENANT_MAX)
      throw new Unavailable('Too many large files are being stored at the moment; try again.');
    this.#byTenant.add(tenant, 1);
    const id = randomUUID();
    const upload = new Upload(sizeBytes, store);
    this.#uploads.set(id, upload);
    void upload.over.finally(() => {
      this.#uploads.delete(id);
      this.#byTenant.add(tenant, -1);
      forget();
    });
    return id;
  }

  async take(id: string, offset: number, bytes: Uint8Array): Promise<void> {
    const upload = this.#uploads.get(id);
    if (upload === undefined) throw new NotFound('This upload is over; begin it anew.');
    await upload.take(offset, bytes);
  }

  close(): void {
    for (const upload of this.#uploads.values()) upload.abandon();
  }
}

/** Of one message. @throws BadUserInput */
export function decoded(data: Uint8Array | string): Uint8Array {
  const bytes = typeof data === 'string' ? Buffer.from(data, 'base64') : data;
  if (!(bytes instanceof Uint8Array)) throw new BadUserInput('A part has its bytes.');
  if (bytes.length > PART_BYTES) throw new BadUserInput(`A part has at most ${PART_BYTES} bytes.`);
  return bytes;
}

class Upload {
  /** Settles, and never rejects, when it is stored or has failed. */
  readonly over: Promise<void>;
  readonly #sizeBytes: number;
  readonly #waiting: { readonly bytes: Uint8Array; taken(): void }[] = [];
  readonly #stored: Promise<void>;
  #received = 0;
  #abandoned = false;
  #wake: () => void = () => {};
  readonly #idle: NodeJS.Timeout;

  constructor(sizeBytes: number, store: Storing) {
    this.#sizeBytes = sizeBytes;
    this.#idle = setTimeout(() => this.abandon(), IDLE_MS_MAX).unref();
    this.#stored = store(this.#bytes());
    this.over = this.#stored.then(
      () => {},
      () => {},
    );
    void this.over.finally(() => {
      clearTimeout(this.#idle);
      for (const part of this.#waiting.splice(0)) part.taken();
    });
  }

  async take(offset: number, bytes: Uint8Array): Promise<void> {
    this.#idle.refresh();
    const end = offset + bytes.length;
    if (offset !== this.#received && end > this.#received) throw new NotFound('A part is missing; begin it anew.');
    if (end > this.#sizeBytes) throw new BadUserInput('There are more bytes than were announced.');
    if (offset === this.#received) {
      if (this.#waiting.length >= WAITING_MAX) throw new NotFound('Too many parts at once; begin it anew.');
      this.#received = end;
      const taken = new Promise<void>((done) => this.#waiting.push({ bytes, taken: done }));
      this.#wake();
      if (end < this.#sizeBytes) await Promise.race([taken, this.#stored]);
    }
    if (end >= this.#sizeBytes) await this.#stored;
  }

  abandon(): void {
    this.#abandoned = true;
    this.#wake();
  }

  async *#bytes(): AsyncGenerator<Uint8Array, void> {
    for (let given = 0; given < this.#sizeBytes;) {
      const part = this.#waiting.shift();
      if (part !== undefined) {
        given += part.bytes.length;
        yield part.bytes;
        part.taken();
        letGo(part.bytes);
        continue;
      }
      if (this.#abandoned) throw new Unavailable('The rest of the upload did not come.');
      await new Promise<void>((wake) => {
        this.#wake = wake;
      });
    }
  }
}
