/**
 * The event stream of a run: its events and its log, merged into the messages that a watcher receives. Pure: events and
 * chunks are given in their orders, from anywhere and at any time; `take` answers the messages that can be emitted now.
 *
 *  EVENTSTREAM-1 Events are emitted in the order of their versions, chunks in the order of the stream `LOGS`. Between the
 *     two orders only this is fixed: a line comes after the `stage_started` of its attempt and before the event that ends the
 *     attempt (P21). Apart from that, how the two interleave depends on when they arrive; every watcher sees the same
 *     messages, and those of one stage in the same order.
 *  EVENTSTREAM-2 Chunks are emitted only if they are of the runner that the journal names for their attempt, bytes only if
 *     they lie before the final offset, and each byte once. Whether a chunk is dropped depends on the journal and the stream
 *     `LOGS` alone.
 *  EVENTSTREAM-3 `stage_completed` and `stage_retrying` wait until the log is emitted up to their offset. A chunk that is not
 *     in `LOGS` any more is emitted as a line of the stream `system`.
 *  EVENTSTREAM-4 Of a cancelled run the lines are emitted whose chunks were closed before the cancel; nothing follows its
 *     event.
 *
 * Waiting ends by asking: `eventsAsked` and `chunksAsked` say what an answer covers, `waitsFor` what to ask next.
 */
import type { StoredChunk } from '@penstock/bus';
import { endsRun, publicEventOf, type RunEvent, type StageText } from '@penstock/run';
import { OrderedAttemptLog, type Piece } from './ordered-attempt-log.ts';
import type { StreamPosition } from './cursor.ts';
import { EventMessage, LineMessage, lineEnvelope, type EmittedMessage } from './emitted-message.ts';

const NO_TEXT: StageText = { text: '', truncated: false };

export class EventStream {
  /** Known events that are not emitted yet; the first one has the version `#emitted + 1`. */
  #events: RunEvent[] = [];
  #emitted = 0;
  /** Chunks that are not handled yet. */
  #chunks: StoredChunk[] = [];
  #sequence = 0;
  #eventsAsked = 0;
  #chunksAsked = 0;
  /** Of every attempt that the journal names; of a stage, the last known one. */
  readonly #attempts = new Map<string, OrderedAttemptLog>();
  readonly #lastAttempt = new Map<string, number>();
  readonly #completedStages = new Set<string>();
  #endKnown = false;
  /** When a cancel (or a quarantine) cut the log off. */
  #cutAt: number | undefined;
  #ended = false;
  /** The position of the line that was emitted last. */
  #lineSequence = 0;
  #lineIndex = 0;
  #messages: EmittedMessage[] = [];

  /** Of the last event known. */
  get version(): number {
    return this.#emitted + this.#events.length;
  }

  /** Of the last chunk given. */
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

  /** `first` is the version of the first of them; known ones are passed over. Throws a RangeError on a gap. */
  addEvents(first: number, events: readonly RunEvent[]): void {
    if (first > this.version + 1)
      throw new RangeError(`events from version ${first} on, after version ${this.version}`);
    for (let version = this.version + 1; version < first + events.length; version++) {
      const event = events[version - first];
      if (event !== undefined) this.#learn(version, event);
    }
  }

  /** In the order of the stream. One with a lower sequence than another before it is emitted where it comes. */
  addChunk(chunk: StoredChunk): void {
    this.#sequence = Math.max(this.#sequence, chunk.sequence);
    if (!this.#ended) this.#chunks.push(chunk);
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
  take(): EmittedMessage[] {
    while (this.#emitEvents() || this.#handleChunk() || this.#giveUpWaiting());
    const messages = this.#messages;
    this.#messages = [];
    return messages;
  }

  #learn(version: number, event: RunEvent): void {
    this.#events.push(event);
    switch (event.type) {
      case 'stage_started':
        this.#attempts.set(
          attemptKey(event.stage, event.attempt),
          new OrderedAttemptLog(event.stage, event.attempt, event.runner, version),
        );
        this.#lastAttempt.set(event.stage, event.attempt);
        return;
      case 'stage_retrying':
      case 'stage_completed': {
        const attempt = this.#attempts.get(attemptKey(event.stage, event.attempt));
        if (attempt !== undefined) attempt.end = event.logBytes;
        if (event.type === 'stage_completed') this.#completedStages.add(event.stage);
        return;
      }
      case 'run_cancelled':
      case 'run_quarantined':
        this.#cutAt = event.at;
        this.#endKnown = true;
        return;
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
    switch (event.type) {
      case 'stage_completed':
      case 'stage_retrying':
        return this.#attempts.get(attemptKey(event.stage, event.attempt))?.complete ?? true;
      case 'run_cancelled':
      case 'run_quarantined':
        return ![...this.#attempts.values()].some((attempt) => this.#isOpen(attempt));
      default:
        return true;
    }
  }

  #emit(version: number, event: RunEvent): void {
    const attempt = 'attempt' in event ? this.#attempts.get(attemptKey(event.stage, event.attempt)) : undefined;
    const shown = publicEventOf(event, () => attempt?.text() ?? NO_TEXT);
    if (shown !== null) this.#messages.push(new EventMessage(version, shown));
    if (event.type === 'stage_completed' || event.type === 'stage_retrying' || event.type === 'stage_returned')
      attempt?.close();
    if (endsRun(event)) {
      this.#ended = true;
      this.#chunks = [];
    }
  }

  #handleChunk(): boolean {
    const chunk = this.#chunks[0];
    if (chunk === undefined || this.#ended) return false;
    const fate = this.#fateOf(chunk);
    if (fate === 'wait') return false;
    this.#chunks.shift();
    if (fate === 'emit') {
      const attempt = this.#attemptOf(chunk) as OrderedAttemptLog;
      this.#emitPieces(attempt, attempt.accept(chunk.chunk), () => this.#linePosition(chunk.sequence), chunk.chunk.at);
    }
    return true;
  }

  #fateOf(stored: StoredChunk): 'emit' | 'drop' | 'wait' {
    const { stage, attempt: number, at } = stored.chunk;
    const attempt = this.#attemptOf(stored);
    if (attempt === undefined) {
      const never = this.#endKnown || this.#completedStages.has(stage) || number < (this.#lastAttempt.get(stage) ?? 0);
      return never || stored.sequence <= this.#eventsAsked ? 'drop' : 'wait';
    }
    if (attempt.runner !== stored.runner || attempt.closed) return 'drop';
    if (attempt.version > this.#emitted) return 'wait';
    return this.#cutAt !== undefined && attempt.end === undefined && at > this.#cutAt ? 'drop' : 'emit';
  }

  /** The next chunk is of an attempt that no known event names; those behind it may be what an event waits for. */
  #awaitsName(): boolean {
    const chunk = this.#chunks[0];
    return chunk !== undefined && this.#attemptOf(chunk) === undefined && this.#fateOf(chunk) === 'wait';
  }

  #attemptOf(stored: StoredChunk): OrderedAttemptLog | undefined {
    return this.#attempts.get(attemptKey(stored.chunk.stage, stored.chunk.attempt));
  }

  /** The next event waits for chunks, and all that there are have been handled, or wait for it in turn. */
  #giveUpWaiting(): boolean {
    const event = this.#events[0];
    const version = this.#emitted + 1;
    if (event === undefined || this.#ended || this.#chunksAsked < version || this.#awaitsName()) return false;
    const gap = { index: 0 };
    const position = (): StreamPosition => ({ kind: 'note', version, index: gap.index++ });
    const flush = (attempt: OrderedAttemptLog): void => this.#emitPieces(attempt, attempt.flush(), position, event.at);
    if (event.type === 'stage_completed' || event.type === 'stage_retrying') {
      const attempt = this.#attempts.get(attemptKey(event.stage, event.attempt));
      if (attempt !== undefined) flush(attempt);
      return attempt !== undefined;
    }
    if (event.type !== 'run_cancelled' && event.type !== 'run_quarantined') return false;
    for (const attempt of this.#attempts.values()) {
      if (!this.#isOpen(attempt)) continue;
      flush(attempt);
      attempt.close();
    }
    return true;
  }

  #isOpen(attempt: OrderedAttemptLog): boolean {
    return !attempt.closed && attempt.version <= this.#emitted;
  }

  #emitPieces(
    attempt: OrderedAttemptLog,
    pieces: readonly Piece[],
    position: () => StreamPosition,
    gapAt: number,
  ): void {
    for (const piece of pieces) {
      const envelope = lineEnvelope(attempt.stage, piece.stream, piece.at ?? gapAt);
      for (const line of linesOf(piece.text)) this.#messages.push(new LineMessage(position(), envelope, line));
    }
  }

  /** A chunk out of its order has its lines counted on from those emitted last, so that cursors only grow. */
  #linePosition(sequence: number): StreamPosition {
    if (sequence > this.#lineSequence) {
      this.#lineSequence = sequence;
      this.#lineIndex = 0;
    }
    return { kind: 'line', sequence: this.#lineSequence, index: this.#lineIndex++ };
  }
}

/** Without their ends, `\n` or `\r\n`. A text that does not end in one has its rest as a line. */
function linesOf(text: string): string[] {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  if (!text.includes('\r\n')) return lines;
  return lines.map((line, index) =>
    line.endsWith('\r') && (index < lines.length - 1 || text.endsWith('\n')) ? line.slice(0, -1) : line,
  );
}

/** Attempts are numbers, so a blank cannot be mistaken for a part of the name. */
function attemptKey(stage: string, attempt: number): string {
  return `${attempt} ${stage}`;
}
