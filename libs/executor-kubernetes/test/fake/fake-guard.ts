/** The guard of a fake Pod and its end of the line, as `pod/guard.sh` and `pod/line.sh` speak; a test says what its stage does. */
import { bootClockMs } from '@penstock/executor';
import type { FakeSocket } from './web-socket.ts';

/** Blocks that wait to be taken, of each stream. */
const WINDOW_BLOCKS = 4;

type Stream = 'out' | 'err';

export class FakeGuard {
  /** How many lines it has had. */
  lines = 0;
  /** How often its stage was started. */
  starts = 0;
  /** Until when it may run, on the boot clock. */
  deadline = 0;
  /** The files that may be replaced, by name. */
  readonly files = new Map<string, string>();
  /** Orders that never arrive, as with a line that breaks. */
  loses: RegExp | null = null;
  readonly lost: string[] = [];
  readonly uid: string;
  readonly #onEnd: (code: number, message: string) => void;
  readonly #blocks: Record<Stream, Buffer[]> = { out: [], err: [] };
  readonly #taken: Record<Stream, number> = { out: 0, err: 0 };
  readonly #waiting: { readonly stream: Stream; readonly bytes: Buffer }[] = [];
  #next: Record<Stream, number> = { out: 0, err: 0 };
  #socket: FakeSocket | null = null;
  #orders = '';
  #putting: string | null = null;
  #code: number | null = null;
  #outputs = '';
  #isTold = false;
  #isAttached = false;

  readonly #asksAtOnce: boolean;

  constructor(uid: string, onEnd: (code: number, message: string) => void, asksAtOnce: boolean) {
    this.uid = uid;
    this.#onEnd = onEnd;
    this.#asksAtOnce = asksAtOnce;
  }

  /** A new line ends the one before. */
  connect(socket: FakeSocket): void {
    this.#socket?.close();
    this.#socket = socket;
    this.lines += 1;
    this.#orders = '';
    this.#putting = null;
    this.#isTold = false;
    this.#isAttached = false;
    socket.onMessage = (bytes) => {
      if (bytes[0] === 0 && this.#socket === socket) this.#onOrders(bytes.toString('utf8', 1));
    };
    const state = this.starts === 0 ? 'waiting' : this.#code === null ? 'running' : `done ${this.#code} exit`;
    this.#say(2, `hello ${this.uid} ${state}\n`);
    if (this.#asksAtOnce) this.#say(2, `ask ${Math.floor(bootClockMs())}\n`);
  }

  /** Its stage prints; a block each. It waits where the window is full. */
  print(text: string, stream: Stream = 'out'): void {
    this.#waiting.push({ stream, bytes: Buffer.from(text) });
    this.#pump();
  }

  /** Its stage ends. */
  end(code: number, outputs = ''): void {
    this.#code = code;
    this.#outputs = outputs;
    this.#pump();
  }

  /** As one that a stage has in its hands: whatever it likes, on the channel of the blocks or that of the answers. */
  forge(channel: 1 | 2, text: string | Buffer): void {
    this.#say(channel, text);
  }

  /** Its line breaks. */
  hangUp(): void {
    this.#socket?.close();
  }

  /** Blocks of output that its stage could not write yet. */
  get held(): number {
    return this.#waiting.length;
  }

  #onOrders(text: string): void {
    this.#orders += text;
    for (let end = this.#orders.indexOf('\n'); end >= 0; end = this.#orders.indexOf('\n')) {
      const line = this.#orders.slice(0, end);
      this.#orders = this.#orders.slice(end + 1);
      if (this.#putting !== null) {
        if (line === this.#putting) this.#putting = null;
      } else if (this.loses?.test(line) === true) this.lost.push(line);
      else this.#onOrder(line.split(' '));
    }
  }

  #onOrder([order, first = '', second = '', ...rest]: string[]): void {
    if (order === 'put') this.#putting = [second, ...rest].join(' ');
    else if (order === 'file') this.files.set(first, second);
    else if (order === 'go') this.starts += 1;
    else if (order === 'until') this.deadline = Number(first);
    else if (order === 'ask') this.#say(2, `ask ${Math.floor(bootClockMs())}\n`);
    else if (order === 'stop') this.#onEnd(143, 'stopped');
    else if (order === 'bye' && this.#code !== null) this.#onEnd(this.#code, 'done');
    else if (order === 'ack') this.#taken[first as Stream] = Math.max(this.#taken[first as Stream], Number(second));
    else if (order === 'attach') {
      this.#isAttached = true;
      this.#next = { out: Number(first), err: Number(second) };
    }
    this.#pump();
  }

  #pump(): void {
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      if (this.#blocks[next.stream].length - this.#taken[next.stream] >= WINDOW_BLOCKS) break;
      this.#blocks[next.stream].push(next.bytes);
      this.#waiting.shift();
    }
    if (!this.#isAttached || this.#putting !== null) return;
    for (const stream of ['out', 'err'] as const) {
      for (let at = this.#next[stream]; at < this.#blocks[stream].length; at += 1) {
        const bytes = this.#blocks[stream][at] ?? Buffer.alloc(0);
        this.#say(
          1,
          Buffer.concat([Buffer.from(`blocks ${stream} ${at} 1\n${bytes.length} ${stream}.${at}\ndata\n`), bytes]),
        );
      }
      this.#next[stream] = this.#blocks[stream].length;
    }
    if (this.#code === null || this.#waiting.length > 0 || this.#isTold) return;
    this.#isTold = true;
    this.#say(1, `outputs ${Buffer.byteLength(this.#outputs)}\n${this.#outputs}done ${this.#code} exit\n`);
  }

  #say(channel: number, text: string | Buffer): void {
    this.#socket?.send(Buffer.concat([Buffer.of(channel), Buffer.from(text)]));
  }
}
