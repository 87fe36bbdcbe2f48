/**
 * Puts `***` in the place of secret values in what a stage prints, in whichever form, also where one arrives in several parts.
 *
 * MASK-1. What could be the beginning of a value is held back until it is known; nothing else is.
 * MASK-2. Values that overlap or follow each other become one mask.
 */
import type { OutputSink, OutputStreamName } from '../contract/port.ts';
import { mergedNeedles, needlesOf } from './mask-needles.ts';
import { makeScanner } from './mask-maker.ts';
import { joinedSearch, MaskScanner, type Search } from './mask-scanner.ts';

const MASK = Buffer.from('***');
const NOTHING = new Uint8Array(0);

/** Together they are searched for at once: made anew in some milliseconds. */
const JOINED_NEEDLES_MAX = 4_000;

/** The values of one attempt. */
export class Mask {
  readonly #values = new Set<string>();
  /** Of what came last, and may be made anew with what comes next. */
  #needles: readonly Buffer[] = [];
  /** Of all before. */
  #before: readonly Search[] = [];
  #search: Search | null = null;

  constructor(values: Iterable<string> = []) {
    this.add(values);
  }

  /** Of any size. Nothing of a stage may be printed before it is there. */
  static async of(values: readonly string[]): Promise<Mask> {
    const mask = new Mask();
    const scanner = await makeScanner(values);
    for (const value of values) mask.#values.add(value);
    mask.#before = scanner === null ? [] : [scanner];
    mask.#search = scanner;
    return mask;
  }

  add(values: Iterable<string>): void {
    const fresh = [...new Set(values)].filter((value) => !this.#values.has(value));
    if (fresh.length === 0) return;
    for (const value of fresh) this.#values.add(value);
    const needles = needlesOf(fresh);
    if (needles.length === 0) return;
    if (this.#needles.length > 0 && this.#needles.length + needles.length > JOINED_NEEDLES_MAX) {
      this.#before = [...this.#before, MaskScanner.of(this.#needles)];
      this.#needles = [];
    }
    // A stage adds values one by one: the forms of those before are not made again for each.
    this.#needles = mergedNeedles(this.#needles, needles);
    this.#search = joinedSearch([...this.#before, MaskScanner.of(this.#needles)]);
  }

  /** Null: there is nothing to look for. */
  get search(): Search | null {
    return this.#search;
  }

  /** A text that is whole: an output, a message. */
  text(text: string): string {
    if (this.#search === null) return text;
    const stream = new MaskedStream();
    const bytes = Buffer.from(text, 'utf8');
    const masked = [...stream.push(bytes, this.#search), ...stream.end(this.#search)];
    return masked[0] === bytes ? text : Buffer.concat(masked).toString('utf8');
  }
}

/** What later stages and everybody who reads the run would see. */
export function maskedOutputs(
  outputs: Readonly<Record<string, string>> | undefined,
  mask: Pick<Mask, 'text'>,
): Readonly<Record<string, string>> | undefined {
  if (outputs === undefined) return undefined;
  return Object.fromEntries(Object.entries(outputs).map(([name, value]) => [name, mask.text(value)]));
}

/** A stage's output on its way to whoever keeps it. */
export class MaskingSink implements OutputSink {
  readonly #inner: OutputSink;
  readonly #mask: Mask;
  /** Called before each part is looked at: what a stage has asked to be masked before it printed that. */
  readonly #refresh: () => void;
  readonly #streams = new Map<OutputStreamName, MaskedStream>();

  constructor(inner: OutputSink, mask: Mask, refresh: () => void = () => {}) {
    this.#inner = inner;
    this.#mask = mask;
    this.#refresh = refresh;
  }

  write(stream: OutputStreamName, bytes: Uint8Array): void | Promise<void> {
    this.#refresh();
    const { search } = this.#mask;
    if (search === null) return this.#inner.write(stream, bytes);
    let masked = this.#streams.get(stream);
    if (masked === undefined) {
      masked = new MaskedStream();
      this.#streams.set(stream, masked);
    }
    const ready = masked.push(bytes, search);
    // Remarks are whole lines, and nothing of them waits for another one.
    if (stream === 'system') return this.#inner.write(stream, Buffer.concat([...ready, ...masked.end(search)]));
    const taken: Promise<void>[] = [];
    for (const part of gathered(ready)) {
      const wait = this.#inner.write(stream, part);
      if (wait !== undefined) taken.push(wait);
    }
    if (taken.length > 0) return Promise.all(taken).then(() => {});
  }

  /** Hands over what was held back; nothing is written afterwards but remarks. */
  finish(): void {
    const { search } = this.#mask;
    if (search === null) return;
    for (const [stream, masked] of this.#streams)
      for (const part of gathered(masked.end(search))) void this.#inner.write(stream, part);
  }
}

/** As few parts as it can be without a copy of much. */
function gathered(parts: readonly Uint8Array[]): readonly Uint8Array[] {
  if (parts.length <= 2) return parts;
  return [Buffer.concat(parts)];
}

class MaskedStream {
  /** Held back. */
  #rest: Uint8Array = NOTHING;
  /** How much of that belongs to a mask which has been handed over already. */
  #covered = 0;
  /** Nothing was handed over since the last mask. */
  #isMask = false;

  /** What may be handed over, in its order: the given bytes themselves where there is nothing to mask in them. */
  push(bytes: Uint8Array, search: Search): Uint8Array[] {
    const parts: Uint8Array[] = [];
    let text = bytes;
    if (this.#rest.length > 0) {
      // Only what a value may have in both is looked at together: the given bytes are not copied.
      const head = Buffer.concat([this.#rest, bytes.subarray(0, search.lengthMax)]);
      const open = search.openFrom(head);
      this.#scan(head, open, search, parts);
      if (open < this.#rest.length) {
        this.#rest = head.subarray(open);
        return parts;
      }
      text = bytes.subarray(open - this.#rest.length);
    }
    const open = search.openFrom(text);
    this.#scan(text, open, search, parts);
    // The bytes are their owner's again.
    this.#rest = open === text.length ? NOTHING : Buffer.from(text.subarray(open));
    return parts;
  }

  /** The rest: nothing comes that it could be the beginning of. */
  end(search: Search): Uint8Array[] {
    const parts: Uint8Array[] = [];
    this.#scan(this.#rest, this.#rest.length, search, parts);
    this.#rest = NOTHING;
    return parts;
  }

  /** Hands over what is before `open`; what begins later is looked for again with what comes next. */
  #scan(text: Uint8Array, open: number, search: Search, parts: Uint8Array[]): void {
    if (text.length === 0) return;
    /** Up to here everything has been handed over. */
    let done = this.#covered;
    let isMask = this.#isMask;
    search.find(text, (start, end) => {
      if (start > open) return;
      if (!isMask || start > done) {
        if (start > done) parts.push(text.subarray(done, start));
        parts.push(MASK);
        isMask = true;
      }
      done = Math.max(done, end);
    });
    this.#isMask = isMask && open <= done;
    if (open > done) parts.push(done === 0 && open === text.length ? text : text.subarray(done, open));
    this.#covered = Math.max(0, done - open);
  }
}
