/**
 * The event stream of a run: its events and its log, merged into the messages that a watcher receives. Pure: events and
 * chunks are given in their orders, from anywhere and at any time; `take` answers the messages that can be emitted now.
 *
 *  EVENTSTREAM-1 Events are emitted in the order of their versions, the chunks of each runner in the order of the stream
 *     `LOGS`. Between these orders only this is fixed: a line comes after the `stage_started` of its attempt and before the
 *     event that ends the attempt (P21). Apart from that, how they interleave depends on when they arrive; every watcher sees
 *     the same messages, and those of one stage in the same order.
 *  EVENTSTREAM-2 Chunks are emitted only if they are of the runner that the journal names for their attempt, bytes only if
 *     they lie before its end (the final offset of its result, or the mark that closes its log), and each byte once. Whether
 *     a chunk is dropped depends on the journal and the stream `LOGS` alone; clocks are never compared.
 *  EVENTSTREAM-3 The event that ends an attempt waits until its log is emitted up to its end. A chunk that is not in `LOGS`
 *     any more is emitted as a line of the stream `system`.
 *  EVENTSTREAM-4 What stands behind a mark waits for the event that ends its attempt, and so does what its runner wrote
 *     after it: only that event says whether it belongs to the event stream.
 *  EVENTSTREAM-5 Nothing follows the event that closes the run: of a cancelled run it comes when its attempts are gone.
 *
 * Waiting ends by asking: `eventsAsked` and `chunksAsked` say what an answer covers, `waitsFor` what to ask next.
 */
import type { StoredChunk } from '@penstock/bus';
import { closesRun, publicEventsOf, type RunEvent, type StageText } from '@penstock/run';
import { OrderedAttemptLog, type Piece } from './ordered-attempt-log.ts';
import type { StreamPosition } from './cursor.ts';
import { EventEmission, type Emission, lineEmissions, lineEnvelope } from './emission.ts';
import { RunnerLog } from './runner-log.ts';

const NO_TEXT: StageText = { text: '', truncated: false };
type AttemptEnd = Extract<RunEvent, { type: 'stage_retrying' | 'stage_completed' | 'attempt_gone' }>;

export class EventStream {
  /** Known events that are not emitted yet; the first one has the version `#emitted + 1`. */
  #events: RunEvent[] = [];
  #emitted = 0;
  readonly #runners = new Map<string, RunnerLog>();
  /** How many runners the journal has named. */
  #named = 0;
  #sequence = 0;
  #eventsAsked = 0;
  #chunksAsked = 0;
  /** Of every attempt that the journal names; of a stage, the last known one. */
  readonly #attempts = new Map<string, OrderedAttemptLog>();
  readonly #lastAttempt = new Map<string, number>();
  readonly #completedStages = new Set<string>();
  #endKnown = false;
  #ended = false;
  #emissions: Emission[] = [];

  /** Of the last event known. */
  get version(): number {
    return this.#emitted + this.#events.length;
  }

  /** The highest of the chunks given. */
  get sequence(): number {
    return this.#sequence;
  }

  /** The last message was emitted: nothing follows. */
  get ended(): boolean {
    return this.#ended;
  }

  /** What has to be asked before more can be emitted; null: nothing waits, or what waits will come by itself. */
  get waitsFor(): 'events' | 'chunks' | null {
    if (this.#ended) return null;
    if (this.#awaitsName()) return 'events';
    const event = this.#events[0];
    return event !== undefined && !this.#canEmit(event) ? 'chunks' : null;
  }

  /** Whether `chunksAsked` of this version would say of something that waits that it does not come any more. */
  lacksChunksUpTo(version: number): boolean {
    return this.#emitted < version && this.waitsFor === 'chunks';
  }

  /** `first` is the version of the first of them; known ones are passed over. Throws a RangeError on a gap. */
  addEvents(first: number, events: readonly RunEvent[]): void {
    if (first > this.version + 1)
      throw new RangeError(`events from version ${first} on, after version ${this.version}`);
    for (let version = this.version + 1; version < first + events.length; version++) {
      const event = events[version - first];
      if (event !== undefined) this.#learn(version, event);
    }
  }

  /** Those of one runner in the order of the stream; how those of several interleave does not matter. */
  addChunk(chunk: StoredChunk): void {
    this.#sequence = Math.max(this.#sequence, chunk.sequence);
    if (!this.#ended) this.#runnerLog(chunk.runner).queue.push(chunk);
  }

  /** All events that were committed when the chunk of this sequence had been stored are known. */
  eventsAsked(sequence: number): void {
    this.#eventsAsked = Math.max(this.#eventsAsked, sequence);
  }

  /** All chunks that were stored when the event of this version was known have been given. */
  chunksAsked(version: number): void {
    this.#chunksAsked = Math.max(this.#chunksAsked, version);
  }

  /** The messages that can be emitted now, in their order; each is given once. */
  take(): Emission[] {
    while (this.#emitEvents() || this.#handleChunk() || this.#giveUpWaiting());
    const emissions = this.#emissions;
    this.#emissions = [];
    return emissions;
  }

  #learn(version: number, event: RunEvent): void {
    this.#events.push(event);
    switch (event.type) {
      case 'stage_started':
        this.#runnerLog(event.runner).number ??= this.#named++;
        this.#attempts.set(
          attemptKey(event.stage, event.attempt),
          new OrderedAttemptLog(event.stage, event.attempt, event.runner, version),
        );
        this.#lastAttempt.set(event.stage, event.attempt);
        return;
      case 'stage_retrying':
      case 'stage_completed':
      case 'attempt_gone': {
        const attempt = this.#attempts.get(attemptKey(event.stage, event.attempt));
        if (attempt !== undefined) {
          attempt.endSequence = event.logSequence;
          attempt.end = event.logBytes ?? (event.logSequence === undefined ? 0 : undefined);
        }
        if (event.type === 'stage_completed') this.#completedStages.add(event.stage);
        return;
      }
      case 'run_cancelled':
      case 'run_quarantined':
      case 'run_completed':
        this.#endKnown = true;
        return;
      default:
    }
  }

  #emitEvents(): boolean {
    let hasEmitted = false;
    for (
      let event = this.#events[0];
      event !== undefined && !this.#ended && this.#canEmit(event);
      event = this.#events[0]
    ) {
      this.#events.shift();
      this.#emitted += 1;
      this.#emit(this.#emitted, event);
      hasEmitted = true;
    }
    return hasEmitted;
  }

  #canEmit(event: RunEvent): boolean {
    if (!endsAttempt(event)) return true;
    const attempt = this.#attempts.get(attemptKey(event.stage, event.attempt));
    return attempt === undefined || attempt.isComplete(this.#runnerLog(attempt.runner).handled);
  }

  #emit(version: number, event: RunEvent): void {
    const attempt = 'attempt' in event ? this.#attempts.get(attemptKey(event.stage, event.attempt)) : undefined;
    // The chunks that its mark closes off are handled: what they waited for does not come any more.
    if (attempt?.endSequence !== undefined && endsAttempt(event)) this.#flush(attempt, version, event.at);
    const shown = publicEventsOf(event, () => attempt?.text() ?? NO_TEXT);
    for (const [index, each] of shown.entries()) {
      // One event may be many messages: a client that has some of them gets the others.
      const isLast = index === shown.length - 1;
      this.#emissions.push(
        new EventEmission(isLast ? { kind: 'event', version } : { kind: 'note', version, index }, each),
      );
    }
    if (endsAttempt(event) || event.type === 'stage_returned') attempt?.close();
    if (closesRun(event)) {
      this.#ended = true;
      this.#runners.clear();
    }
  }

  /** One chunk of the runner whose next one is the earliest of those that can be handled. */
  #handleChunk(): boolean {
    if (this.#ended) return false;
    const waiting = [...this.#runners.values()].filter(({ head }) => head !== undefined);
    if (waiting.length > 1) waiting.sort((one, other) => (one.head?.sequence ?? 0) - (other.head?.sequence ?? 0));
    for (const log of waiting) {
      const { head } = log;
      if (head === undefined) continue;
      const fate = this.#fateOf(head, log);
      if (fate === 'wait') continue;
      log.take();
      if (fate === 'emit') this.#accept(head, log);
      return true;
    }
    return false;
  }

  #accept(stored: StoredChunk, log: RunnerLog): void {
    const attempt = this.#attemptOf(stored);
    if (attempt === undefined) return;
    if (stored.chunk.mark === true) {
      attempt.markedAt ??= stored.sequence;
      return;
    }
    this.#emitPieces(
      attempt,
      attempt.accept(stored.chunk),
      (count) => log.linePosition(stored.sequence, count),
      stored.chunk.at,
    );
  }

  #fateOf(stored: StoredChunk, log: RunnerLog): 'emit' | 'drop' | 'wait' {
    const { stage, attempt: number } = stored.chunk;
    const attempt = this.#attemptOf(stored);
    if (attempt === undefined) {
      const never = this.#endKnown || this.#completedStages.has(stage) || number < (this.#lastAttempt.get(stage) ?? 0);
      return never || stored.sequence <= this.#eventsAsked ? 'drop' : 'wait';
    }
    if (attempt.runner !== stored.runner || attempt.closed) return 'drop';
    if (attempt.version > this.#emitted) return 'wait';
    if (attempt.endSequence !== undefined) return stored.sequence > attempt.endSequence ? 'drop' : 'emit';
    const isBehindMark = attempt.markedAt !== undefined && !attempt.hasEnd;
    return isBehindMark && !log.hasTooMuch ? 'wait' : 'emit';
  }

  /** The next chunk of some runner is of an attempt that no known event names; those behind it may be what an event waits for. */
  #awaitsName(): boolean {
    for (const log of this.#runners.values()) {
      const { head } = log;
      if (head !== undefined && this.#attemptOf(head) === undefined && this.#fateOf(head, log) === 'wait') return true;
    }
    return false;
  }

  #attemptOf(stored: StoredChunk): OrderedAttemptLog | undefined {
    return this.#attempts.get(attemptKey(stored.chunk.stage, stored.chunk.attempt));
  }

  #runnerLog(runner: string): RunnerLog {
    let log = this.#runners.get(runner);
    if (log === undefined) this.#runners.set(runner, (log = new RunnerLog()));
    return log;
  }

  /** The next event waits for chunks, and all that there are have been handled, or wait for it in turn. */
  #giveUpWaiting(): boolean {
    const event = this.#events[0];
    const version = this.#emitted + 1;
    if (event === undefined || this.#ended || this.#chunksAsked < version || this.#awaitsName()) return false;
    if (!endsAttempt(event)) return false;
    const attempt = this.#attempts.get(attemptKey(event.stage, event.attempt));
    if (attempt === undefined) return false;
    this.#flush(attempt, version, event.at);
    const log = this.#runnerLog(attempt.runner);
    log.handled = Math.max(log.handled, attempt.endSequence ?? 0);
    return true;
  }

  /** What waits in the attempt's log for chunks that do not come, with a line for each gap. */
  #flush(attempt: OrderedAttemptLog, version: number, at: number): void {
    let index = 0;
    const position = (count: number): StreamPosition => {
      index += count;
      return { kind: 'note', version, index: index - count };
    };
    this.#emitPieces(attempt, attempt.flush(), position, at);
  }

  #emitPieces(
    attempt: OrderedAttemptLog,
    pieces: readonly Piece[],
    position: (count: number) => StreamPosition,
    gapAt: number,
  ): void {
    for (const piece of pieces) {
      const envelope = lineEnvelope(attempt.stage, piece.stream, piece.at ?? gapAt);
      for (const emission of lineEmissions(piece.output, envelope, position)) this.#emissions.push(emission);
    }
  }
}

/** Attempts are numbers, so a blank cannot be mistaken for a part of the name. */
function attemptKey(stage: string, attempt: number): string {
  return `${attempt} ${stage}`;
}

function endsAttempt(event: RunEvent): event is AttemptEnd {
  return event.type === 'stage_retrying' || event.type === 'stage_completed' || event.type === 'attempt_gone';
}
