/**
 * What is old in the stream of deliveries and stands behind one that is not processed (P24): a repository whose runs find no room may hold that
 * up for days, and what others push meanwhile must not fill the stream. It walks through what stands there, and owns how far it has come.
 *
 *  OLD-1 What is removed was processed by this ingest, its decision is in the store, and its head was handed to this ingest, which does not
 *     hold it any more; or, ten minutes after its time, to one that is gone. In a full stream it need not be as old, where all heads that
 *     anybody has are held here.
 *  OLD-2 What nobody has removed ten minutes after its time is looked into, where it is not known to wait for its turn: nobody may have a
 *     head for it any more, or it was processed by an ingest that is gone. So what is in the stream is processed, whoever dies when.
 *  OLD-3 A walk reads no more than IN_VAIN_MAX in a row of what it cannot remove; the next one goes on there. One that looks into nothing
 *     reads only where something may be to remove.
 *  OLD-4 Nothing is removed with all before it that is neither processed here nor decided: the head that stood for it may be gone with a
 *     delivery that another ingest has removed.
 */
import type { DeliveryLog, StandingDelivery } from '@penstock/bus';
import type { Backlog } from './backlog.ts';

export interface OldDeliveriesOptions {
  readonly stream: Pick<DeliveryLog, 'readOld' | 'removeEach'>;
  readonly backlog: Pick<Backlog, 'isOver' | 'nextOver' | 'nextUnknown' | 'removed' | 'removedBefore' | 'lookInto'>;
  /** Whether a decision of its id is in the store, or none is made of its kind. Throws `StoreError`. */
  isDecided(delivery: StandingDelivery): Promise<boolean>;
  /** Whether a decision about this very one is. Throws `StoreError`. */
  isItselfDecided(delivery: StandingDelivery): Promise<boolean>;
  /** There is something to do in a lane (OLD-2). */
  onLane(lane: string, host: string): void;
}

export interface Walk {
  /** What was stored before this time is old; milliseconds since 1970. */
  readonly before: number;
  /** What was stored before this time is looked into (OLD-2), and nobody else can have a head of it that counts; default none. */
  readonly lookBefore?: number | undefined;
  /** It ends when so many are removed; default when it has come to the end. */
  readonly enough?: number | undefined;
  /** It ends before the next read when this aborts. */
  readonly signal?: AbortSignal | undefined;
}

/** Some 20 MB at the broker. */
const IN_VAIN_MAX = 20_000;
/** Each costs as much as a push whose decision is known. */
const LOOKS_MAX = 100;

export class OldDeliveries {
  readonly #options: OldDeliveriesOptions;
  /** Everything up to this one was walked through. */
  #position = 0;
  #walking: Promise<unknown> = Promise.resolve();

  constructor(options: OldDeliveriesOptions) {
    this.#options = options;
  }

  /** Answers how many were removed. One walk at a time. */
  async walk(walk: Walk): Promise<number> {
    const walked = this.#walking.then(() => this.#walk(walk));
    this.#walking = walked.catch(() => {});
    return await walked;
  }

  /** OLD-4: of what stands in a stretch of the stream, the first that may have to be processed yet, or was not looked at; its end: there is none. */
  async processedUpTo(
    from: number,
    end: number,
    { mostRead = Infinity, signal }: { readonly mostRead?: number; readonly signal?: AbortSignal } = {},
  ): Promise<number> {
    const { stream, backlog } = this.#options;
    backlog.removedBefore(from);
    let at = backlog.nextUnknown(from, end);
    for (let read = 0; at < end && read < mostRead && signal?.aborted !== true; at = backlog.nextUnknown(at, end)) {
      const standing = (await stream.readOld(at - 1, Infinity)).filter(({ sequence }) => sequence < end);
      const isDone = await Promise.all(standing.map((each) => this.#isDone(each)));
      const open = standing[isDone.indexOf(false)];
      if (open !== undefined) {
        this.#look(open);
        return open.sequence;
      }
      read += standing.length;
      at = (standing.at(-1)?.sequence ?? end) + 1;
    }
    return Math.min(at, end);
  }

  async #isDone(each: StandingDelivery): Promise<boolean> {
    const { backlog, isItselfDecided } = this.#options;
    const { sequence } = each;
    return backlog.nextUnknown(sequence, sequence + 1) > sequence || (await isItselfDecided(each));
  }

  async #walk({ before, lookBefore = -Infinity, enough = Infinity, signal }: Walk): Promise<number> {
    let looks = 0;
    let removed = 0;
    let isFromStart = this.#position === 0;
    for (let inVain = 0; inVain < IN_VAIN_MAX && removed < enough && signal?.aborted !== true;) {
      const read = await this.#next(before, lookBefore);
      const last = read.at(-1);
      if (last === undefined) {
        this.#position = 0;
        if (isFromStart || removed > 0) break;
        isFromStart = true;
        continue;
      }
      // What cannot be removed holds up neither what is behind it nor what is to be looked into.
      this.#position = last.sequence;
      for (const each of read) if (each.storedAtMs < lookBefore && looks < LOOKS_MAX && this.#look(each)) looks += 1;
      const gone = await this.#remove(read, lookBefore);
      removed += gone;
      inVain = gone === 0 ? inVain + read.length : 0;
    }
    return removed;
  }

  /** OLD-3 */
  async #next(before: number, lookBefore: number): Promise<readonly StandingDelivery[]> {
    const { stream, backlog } = this.#options;
    if (lookBefore !== -Infinity) return await stream.readOld(this.#position, before);
    const over = backlog.nextOver(this.#position + 1);
    return over === null ? [] : await stream.readOld(over - 1, before);
  }

  /** OLD-1 */
  async #remove(read: readonly StandingDelivery[], lookBefore: number): Promise<number> {
    const { stream, backlog, isDecided } = this.#options;
    const over = read.filter((each) => backlog.isOver(each, each.storedAtMs < lookBefore));
    const decided = await Promise.all(over.map(isDecided));
    const gone = over.filter((_, index) => decided[index]).map(({ sequence }) => sequence);
    await stream.removeEach(gone);
    backlog.removed(gone);
    return gone.length;
  }

  #look(each: StandingDelivery): boolean {
    const lane = this.#options.backlog.lookInto(each);
    if (lane !== null) this.#options.onLane(lane, each.host);
    return lane !== null;
  }
}
