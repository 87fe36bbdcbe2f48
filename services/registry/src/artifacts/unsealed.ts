/**
 * What each key has had stored here and nothing counts yet: what an attempt has stored that came to nothing, what is on its way in. It
 * owns these sums, of this process alone; what counts already others say, when there would be too much.
 *
 *  UNSEALED-1 What is stored counts before its first byte is taken, until a list or an entry counts as much, its storing has failed, or
 *     the sweep has been there.
 *  UNSEALED-2 It is at most UNSEALED_TIMES what the key may keep, or UNSEALED_BYTES_MIN, in contents of CONTENT_BYTES_MIN at least. Whose
 *     tier keeps any number is not counted.
 *  UNSEALED-3 A group of which all counts elsewhere is forgotten, so that nothing stays of the runs of a day. If more comes of it, that
 *     begins anew: what was counted elsewhere before is not taken from it.
 */
import { machineTime, type Time } from '@penstock/async';
import type { LivingAttempt } from '@penstock/bus';
import { QuotaExceeded } from '@penstock/errors';
import { megabytes } from '../catalogue/megabytes.ts';

/** What one look-up is for: a run, or an archive. */
interface Group {
  bytes: number;
  sealed: number;
  underway: number;
  /** Tells whether anything came while others were asked. */
  changes: number;
  readonly begunAt: number;
  changedAt: number;
}

interface OfKey {
  readonly groups: Map<string, Group>;
  bytes: number;
  read: Promise<void> | undefined;
  readAt: number;
  /** So many groups are a reason to ask others, too. */
  groupsKnown: number;
}

export interface UnsealedOptions {
  /** Of these groups of a key: how many bytes count elsewhere since then; Infinity: all there is, or it is not there. */
  sealedOf(key: string, since: ReadonlyMap<string, number>): Promise<ReadonlyMap<string, number>>;
  /** How much of what counts elsewhere is bounded here all the same: its time is over, and it was not swept. As last read. */
  readonly expiredOf?: ((key: string) => number) | undefined;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Default: any number. */
  readonly groupsMax?: number | undefined;
  readonly time?: Pick<Time, 'bootNow'> | undefined;
}

export type Bounded = Pick<LivingAttempt, 'key' | 'artifactBytes'>;

/** Stages of a key that store side by side have as much under way as it may keep, and each may have been lost and tried again. */
const UNSEALED_TIMES = 4;
/** The ten thousand files of one stage, however little its key may keep. */
const UNSEALED_BYTES_MIN = 16 * 1024 ** 2;
/** An empty one takes room, too. */
const CONTENT_BYTES_MIN = 1024;
/** Others are asked again after this. */
const READ_HOLDS_MS = 10_000;
/** What has not changed for so long is no more on its way to be counted, by the clock of whatever registry. */
const SETTLED_MS = 10 * 60_000;
/** Fewer are not worth the asking. */
const GROUPS_KNOWN_MIN = 1_000;

export class Unsealed {
  readonly #options: UnsealedOptions;
  readonly #time: Pick<Time, 'bootNow'>;
  readonly #keys = new Map<string, OfKey>();

  constructor(options: UnsealedOptions) {
    this.#options = options;
    this.#time = options.time ?? machineTime;
  }

  /** UNSEALED-1. @throws QuotaExceeded; what `work` throws */
  async store(by: Bounded, group: string, bytes: number, work: () => Promise<void>): Promise<void> {
    if (by.artifactBytes === undefined) return await work();
    const weight = weightOf(bytes);
    await this.#admit(by, group, bytes, weight);
    try {
      await work();
    } catch (error) {
      this.#change(by.key, group, -weight, -1);
      throw error;
    }
    this.#change(by.key, group, 0, -1);
  }

  /** Said before the bytes come. @throws QuotaExceeded */
  async check(by: Bounded, group: string, bytes: number): Promise<void> {
    if (by.artifactBytes !== undefined) await this.#admit(by, group, bytes, 0);
  }

  /** What was stored before this time, and of which nothing comes any more, if `isSwept`. */
  async forget(before: number, isSwept: (group: string) => Promise<boolean> | boolean): Promise<void> {
    const isDue = (group: Group): boolean => group.underway === 0 && group.changedAt < before;
    for (const [key, ofKey] of this.#keys) {
      // What counts elsewhere by now needs no look of its own.
      if (ofKey.groups.values().some(isDue)) await this.#read(key, ofKey).catch(() => {});
      for (const [id, group] of ofKey.groups)
        // What has come of it meanwhile may be another group of the same name.
        if (isDue(group) && (await isSwept(id)) && isDue(group) && ofKey.groups.get(id) === group)
          this.#drop(key, ofKey, id);
    }
  }

  /** No turn of others comes between the look and the count. */
  async #admit(by: Bounded, group: string, bytes: number, weight: number): Promise<void> {
    if (!this.#fits(by, group, bytes)) await this.#readAgain(by.key);
    if (!this.#fits(by, group, bytes))
      throw new QuotaExceeded(
        `${megabytes(bytes)} MB more cannot be stored: of what no stage has kept (attempts that came to nothing, what has expired) ${megabytes(bytesMax(by))} MB may lie there. It is removed a day after its run has ended; try again then.`,
      );
    if (weight > 0) this.#change(by.key, group, weight, 1);
  }

  #fits(by: Bounded, group: string, bytes: number): boolean {
    const expired = this.#options.expiredOf?.(by.key) ?? 0;
    const ofKey = this.#keys.get(by.key);
    if (ofKey === undefined) return expired + bytes <= bytesMax(by);
    const isRoom = ofKey.groups.has(group) || ofKey.groups.size < (this.#options.groupsMax ?? Infinity);
    return isRoom && ofKey.bytes + expired + weightOf(bytes) <= bytesMax(by);
  }

  #change(key: string, id: string, bytes: number, underway: number): void {
    let ofKey = this.#keys.get(key);
    if (ofKey === undefined) {
      ofKey = { groups: new Map(), bytes: 0, read: undefined, readAt: -Infinity, groupsKnown: GROUPS_KNOWN_MIN };
      this.#keys.set(key, ofKey);
    }
    let group = ofKey.groups.get(id);
    if (group === undefined) {
      group = { bytes: 0, sealed: 0, underway: 0, changes: 0, begunAt: this.#options.now(), changedAt: 0 };
      ofKey.groups.set(id, group);
      // Nobody waits for it, and who has too much asks for itself.
      if (ofKey.groups.size > ofKey.groupsKnown) this.#readAgain(key).catch(() => {});
    }
    ofKey.bytes -= unsealedOf(group);
    group.bytes += bytes;
    ofKey.bytes += unsealedOf(group);
    group.underway += underway;
    group.changes += 1;
    group.changedAt = this.#options.now();
    if (group.bytes === 0 && group.underway === 0) this.#drop(key, ofKey, id);
  }

  #drop(key: string, ofKey: OfKey, id: string): void {
    const group = ofKey.groups.get(id);
    if (group !== undefined) ofKey.bytes -= unsealedOf(group);
    ofKey.groups.delete(id);
    if (ofKey.groups.size === 0) this.#keys.delete(key);
  }

  async #readAgain(key: string): Promise<void> {
    const ofKey = this.#keys.get(key);
    if (ofKey === undefined) return;
    if (ofKey.readAt + READ_HOLDS_MS <= this.#time.bootNow()) {
      // While it is under way there is no other.
      ofKey.readAt = Infinity;
      ofKey.read = this.#read(key, ofKey).then(
        () => void (ofKey.readAt = this.#time.bootNow()),
        (error: unknown) => {
          ofKey.readAt = -Infinity;
          throw error;
        },
      );
    }
    await ofKey.read;
  }

  async #read(key: string, ofKey: OfKey): Promise<void> {
    const groups = [...ofKey.groups];
    const changes = new Map(groups.map(([id, group]) => [id, group.changes]));
    const since = new Map(groups.map(([id, { begunAt }]) => [id, begunAt - SETTLED_MS / 2]));
    const sealed = await this.#options.sealedOf(key, since);
    const settled = this.#options.now() - SETTLED_MS;
    for (const [id, group] of ofKey.groups) {
      const bytes = sealed.get(id) ?? 0;
      const isStill = group.underway === 0 && group.changes === changes.get(id);
      if (isStill && (bytes === Infinity || (bytes >= group.bytes && group.changedAt < settled)))
        this.#drop(key, ofKey, id);
      if (bytes === Infinity || ofKey.groups.get(id) !== group) continue;
      ofKey.bytes -= unsealedOf(group);
      group.sealed = bytes;
      ofKey.bytes += unsealedOf(group);
    }
    ofKey.groupsKnown = Math.max(GROUPS_KNOWN_MIN, 2 * ofKey.groups.size);
  }
}

function unsealedOf({ bytes, sealed }: Group): number {
  return Math.max(0, bytes - sealed);
}

function bytesMax({ artifactBytes = 0 }: Bounded): number {
  return Math.max(UNSEALED_TIMES * artifactBytes, UNSEALED_BYTES_MIN);
}

/** As what a content of so many bytes counts. */
export function weightOf(bytes: number): number {
  return Math.max(bytes, CONTENT_BYTES_MIN);
}
