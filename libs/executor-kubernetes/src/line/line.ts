/**
 * One connection to the guard of a Pod (`pod/line.sh`), from its opening to its end; another follows where it breaks. It knows orders
 * and frames, and not what they are for.
 *
 * POD-LINE-1. A line that is silent for SILENCE_MS is broken: the guard is asked the time every ASK_MS, and answers.
 * POD-LINE-2. So is one that takes nothing of what it is told: its other end may be a stranger's, and no more than ORDERS_WAITING_MAX wait for it.
 */
import type { Cluster, ExecSocket } from '../cluster/cluster.ts';
import { BadLine, ClusterError } from '../errors.ts';
import { GUARD_CONTAINER, GUARD_FOLDER } from '../pod/pod-manifest.ts';
import { FrameReader, type LineFrame } from './frames.ts';

const ASK_MS = 1_000;
const SILENCE_MS = 5_000;
const ANSWER_CHARACTERS_MAX = 8_192;
/** Far more than both windows of output have acknowledgements. */
const ORDERS_WAITING_MAX = 1_000;
/** Of one message to the API server. */
const MESSAGE_BYTES_MAX = 64 * 1024;

export interface LineListener {
  /** The first thing that it says. */
  onHello(uid: string, state: string): void;
  /** The guard asks to go on; `bootMs` is of its machine's clock. */
  onAsk(bootMs: number): void;
  onFrame(frame: LineFrame): void;
  /** Once; `error` where it was not closed from here. */
  onClose(error: unknown): void;
}

export class Line {
  readonly #listener: LineListener;
  readonly #frames = new FrameReader();
  #socket: ExecSocket | null = null;
  #said = '';
  #heardAt = performance.now();
  #asking: NodeJS.Timeout | undefined;
  #isOver = false;
  #isGreeted = false;
  #sending: Promise<void>;
  #waiting = 0;

  /** It opens by itself, and ends by itself where that fails. */
  constructor(cluster: Cluster, pod: string, listener: LineListener) {
    this.#listener = listener;
    this.#sending = this.#open(cluster, pod).catch((error: unknown) => this.#end(error));
  }

  /** Orders go one after the other; one that cannot be sent ends the line. */
  send(order: string): void {
    this.#sendBytes(Buffer.from(`${order}\n`));
  }

  close(): void {
    this.#end(undefined);
  }

  async #open(cluster: Cluster, pod: string): Promise<void> {
    const socket = await cluster.exec(pod, GUARD_CONTAINER, ['sh', `${GUARD_FOLDER}/line`], {
      onStdout: (bytes) => this.#guarded(() => this.#onBytes(bytes)),
      onStderr: (bytes) => this.#guarded(() => this.#onSaid(bytes)),
      onClose: (status) => this.#end(new ClusterError(0, status?.message ?? 'the connection broke')),
    });
    this.#socket = socket;
    this.#heardAt = performance.now();
    if (this.#isOver) socket.close();
    else this.#asking = setInterval(() => this.#ask(), ASK_MS);
  }

  #sendBytes(bytes: Buffer): void {
    if (this.#isOver) return;
    this.#waiting += 1;
    if (this.#waiting > ORDERS_WAITING_MAX)
      return this.#end(new ClusterError(0, 'the guard of the Pod takes nothing of what it is told'));
    this.#sending = this.#sending
      .then(async () => {
        this.#waiting -= 1;
        for (let at = 0; at < bytes.length && !this.#isOver; at += MESSAGE_BYTES_MAX)
          await this.#socket?.send(bytes.subarray(at, at + MESSAGE_BYTES_MAX));
      })
      .catch((error: unknown) => this.#end(error));
  }

  #ask(): void {
    if (performance.now() - this.#heardAt > SILENCE_MS)
      this.#end(new ClusterError(0, 'the guard of the Pod does not answer'));
    else this.send('ask');
  }

  #onBytes(bytes: Buffer): void {
    this.#heardAt = performance.now();
    for (const frame of this.#frames.push(bytes)) this.#listener.onFrame(frame);
  }

  #onSaid(bytes: Buffer): void {
    this.#heardAt = performance.now();
    this.#said += bytes.toString('latin1');
    for (let end = this.#said.indexOf('\n'); end >= 0; end = this.#said.indexOf('\n')) {
      const [word, ...rest] = this.#said.slice(0, end).split(' ');
      this.#said = this.#said.slice(end + 1);
      if (word === 'hello') this.#greet(rest[0] ?? '', rest[1] ?? '');
      else if (word === 'ask' && /^\d{1,15}$/.test(rest[0] ?? '')) this.#listener.onAsk(Number(rest[0]));
    }
    // Complaints of the shell are of no use to anybody; they only must not grow.
    if (this.#said.length > ANSWER_CHARACTERS_MAX) throw new BadLine('a line that is too long');
  }

  /** Once: it is told all that its stage is. */
  #greet(uid: string, state: string): void {
    if (this.#isGreeted) throw new BadLine('hello, again');
    this.#isGreeted = true;
    this.#listener.onHello(uid, state);
  }

  #guarded(callback: () => void): void {
    if (this.#isOver) return;
    try {
      callback();
    } catch (error) {
      this.#end(error);
    }
  }

  #end(error: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearInterval(this.#asking);
    this.#socket?.close();
    this.#listener.onClose(error);
  }
}
