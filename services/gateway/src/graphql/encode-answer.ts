/**
 * An answer as JSON, in pieces of bounded work: what is small is encoded as it is, the rest value by value with pauses
 * between. Ends where the answer becomes larger than it may be.
 */
import { ANSWER_BYTES_MAX, tooLarge, type OperationWork } from './operation-work.ts';

/** Values and characters of a piece that is encoded without a pause: a millisecond, at most. */
const PIECE_VALUES_MAX = 2_000;
const PIECE_CHARACTERS_MAX = 256 * 1024;

/** Throws `BadUserInput`, which names the list that is too long. */
export async function encodeAnswer(answer: object, work: Pick<OperationWork, 'pause'>): Promise<string | Buffer> {
  if (isPiece(answer)) return JSON.stringify(answer);
  const encoder = new Encoder(work);
  await encoder.add(answer);
  return encoder.bytes();
}

class Encoder {
  readonly #work: Pick<OperationWork, 'pause'>;
  readonly #pieces: Buffer[] = [];
  /** Punctuation and keys that wait for the next piece. */
  #pending = '';
  #bytes = 0;
  /** The keys of the lists that the present value is in. */
  readonly #lists: string[] = [];

  constructor(work: Pick<OperationWork, 'pause'>) {
    this.#work = work;
  }

  async add(value: unknown, key = 'data'): Promise<void> {
    if (isPiece(value)) {
      this.#append(JSON.stringify(value) ?? 'null', key);
      await this.#work.pause();
    } else if (Array.isArray(value)) {
      this.#lists.push(key);
      await this.#addAll('[', value.length, (index) => ['', value[index], key], ']');
      this.#lists.pop();
    } else if (typeof value === 'object' && value !== null) {
      const entries = Object.entries(value).filter(([, each]) => each !== undefined);
      const entry = (index: number): [string, unknown, string] => {
        const [name = '', each] = entries[index] ?? [];
        return [`${JSON.stringify(name)}:`, each, name];
      };
      await this.#addAll('{', entries.length, entry, '}');
    } else {
      // A text longer than a piece.
      this.#append(JSON.stringify(value), key);
      await this.#work.pause();
    }
  }

  bytes(): Buffer {
    return Buffer.concat([...this.#pieces, Buffer.from(this.#pending)]);
  }

  async #addAll(
    open: string,
    length: number,
    at: (index: number) => [prefix: string, value: unknown, key: string],
    close: string,
  ): Promise<void> {
    this.#pending += open;
    for (let index = 0; index < length; index++) {
      const [prefix, value, key] = at(index);
      this.#pending += (index === 0 ? '' : ',') + prefix;
      await this.add(value, key);
    }
    this.#pending += close;
  }

  #append(text: string, key: string): void {
    const piece = Buffer.from(this.#pending + text);
    this.#pending = '';
    this.#bytes += piece.length;
    if (this.#bytes > ANSWER_BYTES_MAX) throw tooLarge(this.#lists.length === 0 ? key : this.#lists.join('.'));
    this.#pieces.push(piece);
  }
}

/** Whether it is small enough to be encoded at once; looks at no more than that takes. */
function isPiece(value: unknown): boolean {
  const waiting: unknown[] = [value];
  let characters = 0;
  for (let values = 0; waiting.length > 0; values++) {
    if (values + waiting.length > PIECE_VALUES_MAX || characters > PIECE_CHARACTERS_MAX) return false;
    const next = waiting.pop();
    if (typeof next === 'string') characters += next.length;
    else if (Array.isArray(next)) {
      if (next.length > PIECE_VALUES_MAX) return false;
      waiting.push(...(next as unknown[]));
    } else if (typeof next === 'object' && next !== null) waiting.push(...Object.values(next));
  }
  return characters <= PIECE_CHARACTERS_MAX;
}
