/** What a connection to a broker carries, cut into its messages and what is none, without a byte lost: for a proxy that looks into it. */

/** One message; `bytes` are its own, as they were sent. */
export interface NatsMessage {
  readonly subject: string;
  /** Where its answer is to go. */
  readonly reply: string | undefined;
  readonly payload: Buffer;
}

export interface NatsPiece {
  readonly bytes: Buffer;
  /** Absent: a line of the connection's own. */
  readonly message?: NatsMessage | undefined;
}

const LINE_END = '\r\n';
/** By the first word of a line: how many words stand behind its subject that are no reply, and how many of them are sizes. */
const KINDS: Readonly<Record<string, { readonly ids: number; readonly sizes: 1 | 2 }>> = {
  PUB: { ids: 0, sizes: 1 },
  HPUB: { ids: 0, sizes: 2 },
  MSG: { ids: 1, sizes: 1 },
  HMSG: { ids: 1, sizes: 2 },
};

/** Of one direction, from its first byte on. */
export class NatsMessages {
  #pending: Buffer = Buffer.alloc(0);

  /** What is whole by now. */
  take(bytes: Buffer): NatsPiece[] {
    this.#pending = this.#pending.length === 0 ? bytes : Buffer.concat([this.#pending, bytes]);
    const pieces: NatsPiece[] = [];
    for (let piece = this.#next(); piece !== undefined; piece = this.#next()) {
      pieces.push(piece);
      this.#pending = this.#pending.subarray(piece.bytes.length);
    }
    return pieces;
  }

  #next(): NatsPiece | undefined {
    const all = this.#pending;
    const end = all.indexOf(LINE_END);
    if (end === -1) return undefined;
    const begin = end + LINE_END.length;
    const [word = '', subject = '', ...rest] = all.toString('latin1', 0, end).split(' ');
    const kind = KINDS[word];
    if (kind === undefined) return { bytes: all.subarray(0, begin) };
    const [size = 0, headers = 0] = rest.slice(-kind.sizes).map(Number).toReversed();
    if (all.length < begin + size + LINE_END.length) return undefined;
    const reply = rest.length > kind.ids + kind.sizes ? rest.at(kind.ids) : undefined;
    const payload = all.subarray(begin + headers, begin + size);
    return { bytes: all.subarray(0, begin + size + LINE_END.length), message: { subject, reply, payload } };
  }
}
