/**
 * Puts `***` in the place of secret values in what a stage prints, in whichever form, also where one arrives in several parts.
 *
 * MASK-1. What could be the beginning of a value is held back until it is known; nothing else is.
 * MASK-2. Values that overlap or follow each other become one mask.
 */
import type { OutputSink, OutputStreamName } from '../contract/port.ts';
import { mergedNeedles, needlesOf } from './mask-needles.ts';
import { MaskScanner } from './mask-scanner.ts';

const MASK = Buffer.from('***');
const NOTHING = new Uint8Array(0);

/** The values of one attempt. */
export class Mask {
  readonly #values = new Set<string>();
  #needles: readonly Buffer[] = [];
  #scanner: MaskScanner | null = null;

  constructor(values: Iterable<string> = []) {
    this.add(values);
  }

  add(values: Iterable<string>): void {
    const fresh = [...new Set(values)].filter((value) => !this.#values.has(value));
    if (fresh.length === 0) return;
    for (const value of fresh) this.#values.add(value);
    // A stage adds values one by one: the forms of those before are not made again for each.
    this.#needles = mergedNeedles(this.#needles, needlesOf(fresh));
    this.#scanner = this.#needles.length === 0 ? null : new MaskScanner(this.#needles);
  }

  /** Null: there is nothing to look for. */
  get scanner(): MaskScanner | null {
    return this.#scanner;
  }

  /** A text that is whole: an output, a message. */
  text(text: string): string {
    if (this.#scanner === null) return text;
    const stream = new MaskedStream();
    const bytes = Buffer.from(text, 'utf8');
    const masked = [stream.push(bytes, this.#scanner), stream.end()];
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
    const { scanner } = this.#mask;
    if (scanner === null) return this.#inner.write(stream, bytes);
    let masked = this.#streams.get(stream);
    if (masked === undefined) {
      masked = new MaskedStream();
      this.#streams.set(stream, masked);
    }
    const ready = masked.push(bytes, scanner);
    // Remarks are whole lines, and nothing of them waits for another one.
    const rest = stream === 'system' ? masked.end() : NOTHING;
    return this.#inner.write(stream, rest.length === 0 ? ready : Buffer.concat([ready, rest]));
  }

  /** Hands over what was held back; nothing is written afterwards but remarks. */
  finish(): void {
    for (const [stream, masked] of this.#streams) {
      const rest = masked.end();
      if (rest.length > 0) void this.#inner.write(stream, rest);
    }
  }
}

class MaskedStream {
  /** Held back. */
  #rest: Uint8Array = NOTHING;
  /** How much of that belongs to a mask which has been handed over already. */
  #covered = 0;
  /** Nothing was handed over since the last mask. */
  #isMask = false;

  /** What may be handed over; the given bytes themselves where there is nothing to mask in them. */
  push(bytes: Uint8Array, scanner: MaskScanner): Uint8Array {
    const text = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    const parts: Uint8Array[] = [];
    /** Up to here everything has been handed over. */
    let done = this.#covered;
    let isMask = this.#isMask;
    scanner.find(text, (start, end) => {
      if (!isMask || start > done) {
        parts.push(text.subarray(done, start), MASK);
        isMask = true;
      }
      done = Math.max(done, end);
    });
    const open = scanner.openFrom(text);
    if (text.length > 0) this.#isMask = isMask && open <= done;
    if (open === text.length && parts.length === 0 && done === 0) {
      this.#rest = NOTHING;
      return text;
    }
    if (open > done) parts.push(text.subarray(done, open));
    this.#covered = Math.max(0, done - open);
    // The bytes are their owner's again.
    this.#rest = Buffer.from(text.subarray(open));
    return Buffer.concat(parts);
  }

  end(): Uint8Array {
    const rest = this.#rest.subarray(this.#covered);
    this.#rest = NOTHING;
    this.#covered = 0;
    if (rest.length > 0) this.#isMask = false;
    return rest;
  }
}
