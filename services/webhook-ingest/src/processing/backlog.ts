/**
 * What waits to be processed (P24), by lane. All of it is in the stream; here is only how far each lane has come, and the heads
 * that stand for what is behind them. A lane is read from the stream in order, so several ingests that work in one lane at
 * the same time do the same things in the same order, and each of them twice does no harm (PROCESSING-1).
 *
 *  BACKLOG-1 Whatever is not processed has a head at or before it, of its lane, that is not acknowledged: a head is, at once,
 *     where an earlier one of its lane is held, and that one only when all up to the next that is held is processed; or its own head
 *     was not handed out yet. So a killed ingest loses nothing, and the consumer's acknowledgements say what may be removed.
 *  BACKLOG-2 A lane holds at most `HEADS_MAX` heads, however much waits in it: one repository takes no place of another.
 *  BACKLOG-3 What was read ahead takes at most `READ_BYTES_MAX` in all lanes together, and one delivery each for those under way.
 *  BACKLOG-4 A lane of which nobody here knows how far it has come is read from its first delivery. What is decided is passed
 *     over by asking the store, but for the last that is: its run or its status may be missing. So of two that are decided the first
 *     is always processed whole.
 *  BACKLOG-5 What an ingest has taken in itself may be noted before its head comes, which may be long after it was processed: then the
 *     head is acknowledged, and nothing is done again. It is known by its time: a stream that was made anew counts from the beginning.
 *  BACKLOG-6 Where the stream may have been made anew, no lane is read on from where it had come to before the delivery there was seen to be the same;
 *     else it is read from its first one. For BACKLOG-4 a lane must be done in order, and in the new stream that one may stand behind others.
 *  BACKLOG-7 What was processed here is known one by one, until it is gone from the stream or that was made anew; and of what the head was
 *     handed to this ingest. Of any other the head may be held elsewhere, or wait to be handed out again: with its delivery it would be gone, and
 *     what is behind it would have none (BACKLOG-1).
 */
import type { DeliveryLog, DeliveryPlace, HeldDelivery, StandingDelivery } from '@penstock/bus';
import { decodeDelivery, type Delivery } from '../model/delivery.ts';
import { sharingOf } from '../model/lane-name.ts';
import { NOTHING_WAITS, OwnersWaiting, type Waiting } from './owners-waiting.ts';
import { SequenceSet } from './sequence-set.ts';

export interface BacklogOptions {
  readonly stream: Pick<DeliveryLog, 'read' | 'readLane'>;
  /** Whether its decision is in the store, and none of another delivery of its id. */
  isDecided(delivery: Delivery): Promise<boolean>;
}

export interface Piece {
  readonly sequence: number;
  /** By the broker's clock. */
  readonly storedAt: number;
  readonly delivery: Delivery;
  /** What was read ahead of its lane, the next first; a few. Of a piece that is asked for again it is what came since, too. */
  readonly behind: () => readonly Delivery[];
}

/** What waits, for who bounds it. */
export type WhatWaits = Pick<Backlog, 'waitingIn' | 'waitingOf' | 'waiting'>;

type Standing = Pick<StandingDelivery, 'lane' | 'sequence'>;

interface Ahead {
  readonly sequence: number;
  readonly bytes: Uint8Array;
  readonly storedAtMs: number;
  /** Once somebody has looked at it. */
  delivery?: Delivery;
}

interface Position {
  /** Everything up to this one is processed. */
  readonly position: number;
  /** When it was stored; -Infinity: it was not looked at. */
  readonly storedAt: number;
  /** BACKLOG-6: when the stream was last known to hold it; see `#era`. */
  readonly era: number;
}

interface Lane {
  /** Whose it is; '': of no user's connected repository. */
  readonly owner: string;
  /** As it is counted for its owner. */
  waiting: Waiting;
  /** See `Position`. */
  position: number;
  storedAt: number;
  era: number;
  /** BACKLOG-4. */
  isLocating: boolean;
  /** Not acknowledged; in order. */
  readonly heads: HeldDelivery[];
  /** Every so many heads one is held. */
  spacing: number;
  sinceHeld: number;
  /** The highest that is known to be there. */
  newest: number;
  /** How often something came. */
  came: number;
  /** The same when what is read ahead was asked for. */
  cameBefore: number;
  ahead: Ahead[];
  /** The piece that was given last. */
  given: number;
  /** In the stream behind what was read ahead. */
  behind: number;
  /** Of what is known of the lane: for the mean. */
  measured: number;
  bytesMeasured: number;
}

const HEADS_MAX = 4;
const SPACING = 64;
/** Looking at a head costs as much as all else that is done with it. Which are looked at nobody can foretell, who might make those small. */
const MEASURED_AT_FIRST = 64;
const MEASURED_SHARE = 1 / 8;
const READ_AHEAD = { deliveries: 64, bytes: 64 * 1024 };
const READ_ONE = { deliveries: 1, bytes: 1 };
const READ_BYTES_MAX = 8 * 1024 * 1024;
/** Beyond, only by their heads, of which half as many are held: strangers name repositories. */
const LANES_NOTED_MAX = 8_000;
/** Lanes that are empty, remembered so that their next delivery is found without a look at those before it. */
const POSITIONS_MAX = 10_000;
/**
 * Of what was read ahead, to be looked at before its turn: BACKLOG-3 counts the bytes, and what they say takes some more. While as many as one
 * fetch brings along are processed, as many again are fetched.
 */
const BEHIND_MAX = 31;
/** In place of a lane for what names none. */
const ALONE = '#';

export class Backlog {
  readonly #options: BacklogOptions;
  readonly #lanes = new Map<string, Lane>();
  readonly #owners = new OwnersWaiting();
  readonly #positions = new Map<string, Position>();
  /** BACKLOG-7 */
  readonly #processed = new SequenceSet();
  /** BACKLOG-7: heads that have come here, held or acknowledged. */
  readonly #handed = new SequenceSet();
  #bytesAhead = 0;
  /** Counts how often the stream may have been made anew. */
  #era = 0;
  #lastNoted = 0;

  constructor(options: BacklogOptions) {
    this.#options = options;
  }

  /** Answers the lane in which there is something to do now; null: there is nothing (BACKLOG-5). */
  add(head: HeldDelivery): string | null {
    this.#handed.add(head.sequence);
    const name = nameOf(head.lane, head.sequence);
    if (this.#isDone(name, head)) {
      head.acknowledge();
      return null;
    }
    const lane = this.#laneFor(name, head.host);
    lane.came += 1;
    // Handed out again, which says that nobody knows it to be processed. Another stream's may be a first one; BACKLOG-6 looks after those.
    if (head.sequence <= lane.position && (lane.era === this.#era || !head.isFirst))
      this.#goBack(lane, head.sequence - 1);
    const isNew = head.sequence > lane.newest;
    if (isNew) this.#knows(lane, head.sequence);
    if (hold(lane, head) || (isNew && (lane.measured < MEASURED_AT_FIRST || Math.random() < MEASURED_SHARE)))
      measure(lane, head.bytes);
    this.#count(lane);
    return name;
  }

  /** BACKLOG-5: a delivery that has just been stored, of so many bytes. False: there are too many lanes, and it is known by its head. */
  note({ lane: name, host }: DeliveryPlace, sequence: number, bytes: number): boolean {
    // BACKLOG-6, by DELIVERYLOG-4.
    if (sequence <= this.#lastNoted) this.#beginEra();
    this.#lastNoted = sequence;
    if (!this.#lanes.has(name) && this.#lanes.size >= LANES_NOTED_MAX) return false;
    const lane = this.#laneFor(name, host);
    lane.came += 1;
    if (sequence <= lane.newest) return true;
    this.#knows(lane, sequence);
    measure(lane, bytes);
    this.#count(lane);
    return true;
  }

  /** The heads that were added stand for nothing any more: what is not processed comes again. BACKLOG-6. */
  startAnew(): void {
    this.#beginEra();
    for (const lane of this.#lanes.values()) {
      lane.heads.length = 0;
      lane.sinceHeld = 0;
    }
  }

  /**
   * BACKLOG-7. False also of a head that is held, by which what is behind it comes again (BACKLOG-1). `isLeft`: whoever was handed its head
   * is gone by now, or has acknowledged it.
   */
  isOver({ lane, sequence }: Standing, isLeft: boolean): boolean {
    const heads = this.#lanes.get(nameOf(lane, sequence))?.heads ?? [];
    return (
      this.#processed.has(sequence) &&
      (isLeft || this.#handed.has(sequence)) &&
      heads.every((head) => head.sequence !== sequence)
    );
  }

  /** The first from there on that may be over; null: there is none. */
  nextOver(from: number): number | null {
    // In turns: of a million in one of the sets none may be in the other.
    for (let next = this.#processed.next(from); next !== null;) {
      const handed = this.#handed.next(next);
      if (handed === null || handed === next) return handed;
      next = this.#processed.next(handed);
    }
    return null;
  }

  /** The first of a stretch that is not known to be processed; its end: there is none. */
  nextUnknown(from: number, end: number): number {
    let next = from;
    while (next < end && this.#processed.has(next)) next += 1;
    return next;
  }

  /** They are gone from the stream. */
  removed(sequences: readonly number[]): void {
    for (const set of [this.#processed, this.#handed]) for (const sequence of sequences) set.delete(sequence);
  }

  /** So is all before this one. */
  removedBefore(sequence: number): void {
    for (const set of [this.#processed, this.#handed]) set.forgetBefore(sequence);
  }

  /** Answers the lane of what stands in the stream and is not known to be processed; null: it has its turn anyway, or there are too many lanes. */
  lookInto(standing: Standing & Pick<StandingDelivery, 'host'>): string | null {
    const { sequence } = standing;
    const name = nameOf(standing.lane, sequence);
    if (this.#processed.has(sequence) || this.#lanes.has(name) || this.#lanes.size >= LANES_NOTED_MAX) return null;
    const lane = this.#laneFor(name, standing.host);
    lane.came += 1;
    // It was processed here before what is known of that was given up: read on from where the lane has come to, it would never be met.
    if (sequence <= lane.position) this.#goBack(lane, sequence - 1);
    return name;
  }

  /** What waits in a lane of what this ingest knows, the piece under way included. */
  waitingIn(name: string): Waiting {
    return this.#lanes.get(name)?.waiting ?? NOTHING_WAITS;
  }

  /** What waits in all lanes of an owner. */
  waitingOf(owner: string): Waiting {
    return this.#owners.of(owner);
  }

  /** What waits in all lanes. */
  get waiting(): Waiting {
    return this.#owners.all;
  }

  /** The next piece of a lane; the same one again until it is `done`. Null: there is none, and the lane is forgotten. */
  async next(name: string): Promise<Piece | null> {
    const lane = this.#lanes.get(name);
    if (lane === undefined) return null;
    for (;;) {
      if (wantsMore(lane)) this.#dropAhead(lane);
      const first = lane.ahead[0];
      if (first !== undefined) {
        lane.given = first.sequence;
        const { ahead } = lane;
        const behind = (): Delivery[] => ahead.slice(1, 1 + BEHIND_MAX).map(deliveryOf);
        return { sequence: first.sequence, storedAt: first.storedAtMs, delivery: deliveryOf(first), behind };
      }
      if (lane.era !== this.#era) {
        await this.#lookAgain(lane);
        continue;
      }
      const { came, position } = lane;
      const isEmpty = !(await this.#readAhead(name, lane));
      if (isEmpty && lane.came === came && lane.position === position) {
        this.#forget(name, lane);
        return null;
      }
    }
  }

  done(name: string, { sequence, storedAt }: Piece): void {
    const lane = this.#lanes.get(name);
    // It went back meanwhile: done again.
    if (lane === undefined || lane.ahead[0]?.sequence !== sequence) return;
    this.#bytesAhead -= lane.ahead.shift()?.bytes.length ?? 0;
    if (lane.era === this.#era) this.#processed.add(sequence);
    this.#goOn(lane, { position: sequence, storedAt });
    this.#count(lane);
  }

  #beginEra(): void {
    this.#era += 1;
    this.#processed.clear();
    this.#handed.clear();
  }

  #isDone(name: string, head: HeldDelivery): boolean {
    const known = this.#lanes.get(name) ?? this.#positions.get(name);
    if (known === undefined || known.era !== this.#era) return false;
    return head.sequence <= known.position && head.isFirst && head.storedAtMs <= known.storedAt;
  }

  #knows(lane: Lane, sequence: number): void {
    lane.behind += 1;
    lane.newest = sequence;
  }

  #laneFor(name: string, host: string): Lane {
    const known = this.#lanes.get(name);
    if (known !== undefined) return known;
    const last = this.#positions.get(name);
    const { owner } = sharingOf(host);
    const lane: Lane = {
      owner,
      waiting: NOTHING_WAITS,
      position: last?.position ?? 0,
      storedAt: last?.storedAt ?? -Infinity,
      era: last?.era ?? this.#era,
      isLocating: last === undefined,
      heads: [],
      spacing: SPACING,
      sinceHeld: 0,
      newest: 0,
      came: 0,
      cameBefore: 0,
      ahead: [],
      given: 0,
      behind: 0,
      measured: 0,
      bytesMeasured: 0,
    };
    this.#lanes.set(name, lane);
    this.#owners.begin(owner);
    return lane;
  }

  /** After what is known of a lane has changed. */
  #count(lane: Lane): void {
    const deliveries = lane.ahead.length + lane.behind;
    const bytes = Math.ceil((deliveries * lane.bytesMeasured) / Math.max(1, lane.measured));
    this.#owners.changed(lane.owner, lane.waiting, { deliveries, bytes });
    lane.waiting = { deliveries, bytes };
  }

  /** BACKLOG-6 */
  async #lookAgain(lane: Lane): Promise<void> {
    const era = this.#era;
    const { position, storedAt } = lane;
    const found = position === 0 ? null : await this.#options.stream.read(position);
    if (lane.position !== position) return;
    lane.era = era;
    if (position === 0 || found?.storedAtMs === storedAt) return;
    this.#goBack(lane, 0);
    lane.newest = 0;
  }

  /** False: nothing is there. */
  async #readAhead(name: string, lane: Lane): Promise<boolean> {
    const { position, came } = lane;
    const most = this.#bytesAhead > READ_BYTES_MAX ? READ_ONE : READ_AHEAD;
    const read = name.startsWith(ALONE)
      ? await this.#readAlone(Number(name.slice(ALONE.length)), position)
      : await this.#options.stream.readLane(name, position, most);
    if (lane.position !== position || read.deliveries.length === 0) return false;
    const from = lane.isLocating ? await this.#firstToDo(read.deliveries) : 0;
    if (lane.position !== position) return false;
    lane.isLocating &&= from > 0;
    if (lane.era === this.#era)
      for (const { sequence } of read.deliveries.slice(0, from)) this.#processed.add(sequence);
    lane.ahead = read.deliveries.slice(from);
    lane.behind = read.behind;
    lane.cameBefore = came;
    for (const { bytes } of lane.ahead) this.#bytesAhead += bytes.length;
    this.#count(lane);
    return true;
  }

  async #readAlone(sequence: number, position: number): ReturnType<DeliveryLog['readLane']> {
    const found = position < sequence ? await this.#options.stream.read(sequence) : null;
    return { deliveries: found === null ? [] : [found], behind: 0 };
  }

  /** BACKLOG-4: of what is there in order, the last that is decided; the first where none is. */
  async #firstToDo(deliveries: readonly { readonly bytes: Uint8Array }[]): Promise<number> {
    const decided = await Promise.all(deliveries.map(({ bytes }) => this.#options.isDecided(decodeDelivery(bytes))));
    return Math.max(0, decided.lastIndexOf(true));
  }

  #goOn(lane: Lane, { position, storedAt }: Pick<Position, 'position' | 'storedAt'>): void {
    lane.position = position;
    lane.storedAt = storedAt;
    // BACKLOG-1
    for (let next = lane.heads[1]; next !== undefined && next.sequence <= position; next = lane.heads[1])
      lane.heads.shift()?.acknowledge();
  }

  #goBack(lane: Lane, position: number): void {
    this.#dropAhead(lane);
    lane.position = position;
    lane.storedAt = -Infinity;
    lane.isLocating = true;
    this.#count(lane);
  }

  /** To be read again. */
  #dropAhead(lane: Lane): void {
    for (const { bytes } of lane.ahead) this.#bytesAhead -= bytes.length;
    lane.ahead = [];
    lane.given = 0;
  }

  #forget(name: string, lane: Lane): void {
    for (const head of lane.heads) head.acknowledge();
    this.#lanes.delete(name);
    this.#owners.end(lane.owner, lane.waiting);
    if (name.startsWith(ALONE)) return;
    this.#positions.delete(name);
    this.#positions.set(name, { position: lane.position, storedAt: lane.storedAt, era: lane.era });
    if (this.#positions.size <= POSITIONS_MAX) return;
    const [oldest] = this.#positions.keys();
    if (oldest !== undefined) this.#positions.delete(oldest);
  }
}

function nameOf(lane: string | null, sequence: number): string {
  return lane ?? `${ALONE}${sequence}`;
}

/** The piece that was given was not done, something came behind it since, and less was read than what is looked at before its turn. */
function wantsMore({ ahead, behind, given, came, cameBefore }: Lane): boolean {
  return ahead[0]?.sequence === given && ahead.length <= BEHIND_MAX && behind > 0 && came !== cameBefore;
}

function deliveryOf(ahead: Ahead): Delivery {
  return (ahead.delivery ??= decodeDelivery(ahead.bytes));
}

function measure(lane: Lane, bytes: number): void {
  lane.measured += 1;
  lane.bytesMeasured += bytes;
}

/** BACKLOG-1, BACKLOG-2: the more a lane gets, the further the heads that are held lie apart. Whether it is held; else it is acknowledged. */
function hold(lane: Lane, head: HeldDelivery): boolean {
  const { heads } = lane;
  const [first, last] = [heads[0], heads.at(-1)];
  if (first === undefined || last === undefined || head.sequence < first.sequence) heads.unshift(head);
  else {
    lane.sinceHeld += 1;
    if (lane.sinceHeld < lane.spacing || head.sequence < last.sequence) {
      head.acknowledge();
      return false;
    }
    heads.push(head);
    lane.sinceHeld = 0;
  }
  if (heads.length <= HEADS_MAX) return true;
  lane.spacing *= 2;
  for (let at = heads.length - 2; at > 0; at -= 2) heads.splice(at, 1)[0]?.acknowledge();
  return true;
}
