/**
 * Answers about runs, kept as they went out. Pages ask the same again and again, mostly to learn that nothing has changed.
 *
 *  ANSWERS-1 An answer is given again only where its caller's rights are the same, and no commit about a run that these show lies between
 *     the asking before it was read and the one before it is given (P22). Or where all that it tells are runs that have ended.
 *  ANSWERS-2 What is kept is bounded in bytes, keys included; the longest unasked goes first.
 *  ANSWERS-3 Nobody waits longer for a question that is asked once: only from the second time on an answer is kept.
 *  ANSWERS-4 Of one question one answer is made at a time: those who come meanwhile share the next, which is read after they came.
 *  ANSWERS-5 Where commits lie between all askings of a question, most are answered without asking for them first: they would only be asked
 *     to learn that there are some. Now and then two in a row are asked, and the question is as any other once there was none between them.
 */
import { within } from '@penstock/async';
import { TaggedError } from '@penstock/errors';

export interface AnswerCacheOptions<A> {
  /** See `RunReads.changes`. */
  changes(tenants: readonly string[]): Promise<string | null>;
  bytesOf(answer: A): number;
  /** Default 32 MiB. */
  readonly bytesMax?: number | undefined;
}

export interface Question {
  /** All that the answer depends on but runs. */
  readonly key: string;
  /** Whose runs it may be about. */
  readonly tenants: readonly string[];
}

export interface MadeAnswer<A> {
  readonly answer: A;
  /** `never`: it is no answer to be kept; `ended`: what it tells does not change; `committed`: what it tells is as committed. */
  readonly holds: 'never' | 'ended' | 'committed';
}

interface Making<A> {
  /** Ended when the present one is, however. */
  now: Promise<void>;
  next: Promise<A> | undefined;
}

class NotShared extends TaggedError {
  readonly tag = 'NotShared';
}

const notShared = (cause: unknown): never => {
  throw new NotShared('the answer that was waited for was not made', { cause });
};

interface Kept<A> {
  readonly answer: A;
  /** Null: of ended runs. */
  readonly changes: string | null;
  readonly keptAt: number;
  readonly bytes: number;
  /** At how many askings in a row there were commits since the one before (ANSWERS-5). */
  readonly changedBefore: number;
  /** Askings since it was kept that were answered without looking for commits. */
  unlooked: number;
}

const BYTES_MAX = 32 * 1024 * 1024;
/** Of one answer with its key: a page is far below. */
const ANSWER_BYTES_MAX = 512 * 1024;
const SEEN_MAX = 500;
/** What has ended may still be removed, by another gateway too. */
const ENDED_MS = 10_000;
/** ANSWERS-5: after so many askings with commits between them, so many others are not looked at. */
const CHANGED_BEFORE_MAX = 3;
const UNLOOKED_MAX = 8;
/** An owner that takes longer is waited for by the reading itself, which knows what needs it. */
const CHANGES_MS_MAX = 1_000;

export class AnswerCache<A> {
  readonly #options: AnswerCacheOptions<A>;
  readonly #kept = new Map<string, Kept<A>>();
  /** What was asked once, with how long its answer holds. */
  readonly #seen = new Map<string, MadeAnswer<A>['holds']>();
  readonly #making = new Map<string, Making<A>>();
  #bytes = 0;
  /** How often all was forgotten: what was read before is not kept. */
  #cleared = 0;

  constructor(options: AnswerCacheOptions<A>) {
    this.#options = options;
  }

  async answer({ key, tenants }: Question, make: () => Promise<MadeAnswer<A>>): Promise<A> {
    const kept = this.#kept.get(key);
    if (kept?.changes === null && performance.now() - kept.keptAt < ENDED_MS) return this.#again(key, kept);
    const isKnown = kept !== undefined || this.#seen.has(key);
    const isOfEnded = kept === undefined ? this.#seen.get(key) === 'ended' : kept.changes === null;
    const isUnlooked = kept !== undefined && isRestless(kept);
    const changes = isKnown && !isOfEnded && !isUnlooked ? await this.#changes(tenants) : null;
    if (kept !== undefined && kept.changes !== null && kept.changes === changes)
      return this.#again(key, { ...kept, changedBefore: 0, unlooked: 0 });
    if (!isKnown || isOfEnded) return await this.#make(key, make, changes);
    if (isUnlooked) kept.unlooked += 1;
    return await this.#shared(key, changes, async (known) =>
      this.#make(key, make, isUnlooked ? null : (known ?? (await this.#changes(tenants)))),
    ).catch(async (error: unknown) => {
      // Its maker's client has gone, or may not have it: each learns for itself what it is told.
      if (error instanceof NotShared) return await this.#make(key, make, null);
      throw error;
    });
  }

  /** Of runs that have ended some are gone now. */
  clear(): void {
    this.#kept.clear();
    this.#bytes = 0;
    this.#cleared += 1;
  }

  async #make(key: string, make: () => Promise<MadeAnswer<A>>, changes: string | null): Promise<A> {
    const cleared = this.#cleared;
    const { answer, holds } = await make();
    if (cleared !== this.#cleared) return answer;
    const isKnown = this.#seen.has(key) || this.#kept.has(key);
    if (holds !== 'never' && isKnown && (changes !== null || holds === 'ended'))
      this.#keep(key, answer, holds === 'ended' ? null : changes);
    else if (holds !== 'never') this.#see(key, holds);
    return answer;
  }

  /** ANSWERS-4. Rejects with `NotShared` where somebody else's making failed. */
  #shared(key: string, changes: string | null, make: (changes: string | null) => Promise<A>): Promise<A> {
    const making = this.#making.get(key);
    if (making?.next !== undefined) return making.next.catch(notShared);
    const begin = (known: string | null): Promise<A> => {
      const mine: Making<A> = { next: undefined, now: Promise.resolve() };
      this.#making.set(key, mine);
      const made = make(known).finally(() => {
        if (mine.next === undefined) this.#making.delete(key);
      });
      mine.now = made.then(
        () => {},
        () => {},
      );
      return made;
    };
    if (making === undefined) return begin(changes);
    making.next = making.now.then(() => begin(null));
    return making.next;
  }

  #changes(tenants: readonly string[]): Promise<string | null> {
    const asked = this.#options.changes(tenants).catch(() => null);
    return within(CHANGES_MS_MAX, asked, () => null);
  }

  #again(key: string, kept: Kept<A>): A {
    if (this.#kept.delete(key)) this.#kept.set(key, kept);
    return kept.answer;
  }

  #keep(key: string, answer: A, changes: string | null): void {
    const before = this.#kept.get(key);
    this.#forget(key);
    const bytes = 2 * key.length + this.#options.bytesOf(answer);
    if (bytes > ANSWER_BYTES_MAX) return;
    const changedBefore =
      before === undefined ? 0 : before.unlooked > 0 ? CHANGED_BEFORE_MAX - 1 : before.changedBefore + 1;
    this.#kept.set(key, { answer, changes, keptAt: performance.now(), bytes, changedBefore, unlooked: 0 });
    this.#bytes += bytes;
    for (const oldest of this.#kept.keys()) {
      if (this.#bytes <= (this.#options.bytesMax ?? BYTES_MAX)) break;
      this.#forget(oldest);
    }
  }

  #forget(key: string): void {
    this.#bytes -= this.#kept.get(key)?.bytes ?? 0;
    this.#kept.delete(key);
  }

  #see(key: string, holds: MadeAnswer<A>['holds']): void {
    this.#seen.delete(key);
    this.#seen.set(key, holds);
    if (this.#seen.size <= SEEN_MAX) return;
    const [oldest] = this.#seen.keys();
    if (oldest !== undefined) this.#seen.delete(oldest);
  }
}

/** ANSWERS-5. */
function isRestless({ changes, changedBefore, unlooked }: Kept<unknown>): boolean {
  return changes !== null && changedBefore >= CHANGED_BEFORE_MAX && unlooked < UNLOOKED_MAX;
}
