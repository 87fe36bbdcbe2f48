/**
 * One open log stream as a socket: what waits in it, whether it moves, and its end. It owns the response; nothing else
 * writes to it.
 *
 *  CLIENT-1 At most `ROOM_BYTES` and what one write adds to them wait in the socket.
 *  CLIENT-2 A client that takes nothing of what waits for 30 s is closed; it comes back with its cursor.
 */
import type { ServerResponse } from 'node:http';

const ROOM_BYTES = 256 * 1024;
/** The size of one write, small enough that CLIENT-1 is nearly a bound. */
export const WRITE_BYTES = 64 * 1024;
const STALLED_MS_MAX = 30_000;

/** What a stream is written to. */
export type StreamSink = Pick<
  StreamClient,
  'closed' | 'hasRoom' | 'room' | 'write' | 'end' | 'destroy' | 'closeIfStalled' | 'onRoom'
>;

export class StreamClient {
  readonly #response: ServerResponse;
  readonly #closed = new AbortController();
  #room: PromiseWithResolvers<void> | undefined;
  #waitingSince: number | undefined;
  #ending = false;
  /** Called when there is room again after there was none. */
  onRoom: () => void = () => {};

  constructor(response: ServerResponse) {
    this.#response = response;
    response.on('drain', () => {
      this.#waitingSince = undefined;
      this.#settleRoom();
      this.onRoom();
    });
    const close = (): void => {
      this.#closed.abort();
      this.#settleRoom();
    };
    response.on('finish', close);
    response.on('close', close);
    response.on('error', close);
    if (response.destroyed) close();
  }

  /** Aborted when the client is gone, or the stream has ended. */
  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  get hasRoom(): boolean {
    return this.#response.writableLength < ROOM_BYTES && !this.#closed.signal.aborted && !this.#ending;
  }

  /** Resolves when there is room, or the client is gone. */
  async room(): Promise<void> {
    if (this.hasRoom || this.#closed.signal.aborted) return;
    this.#room ??= Promise.withResolvers<void>();
    await this.#room.promise;
  }

  /** `taken` is called once nobody reads the bytes any more, or never. */
  write(bytes: Uint8Array, taken?: () => void): void {
    if (this.#closed.signal.aborted || this.#ending) return;
    if (!this.#response.write(bytes, taken)) this.#waitingSince ??= performance.now();
  }

  /** Ends the stream behind what waits. */
  end(last?: Uint8Array): void {
    if (this.#ending || this.#closed.signal.aborted) return;
    if (last !== undefined) this.write(last);
    this.#ending = true;
    this.#waitingSince ??= performance.now();
    this.#response.end();
  }

  destroy(): void {
    this.#response.destroy();
  }

  /** Call it regularly (CLIENT-2). */
  closeIfStalled(): void {
    if (this.#waitingSince !== undefined && performance.now() - this.#waitingSince > STALLED_MS_MAX) this.destroy();
  }

  #settleRoom(): void {
    this.#room?.resolve();
    this.#room = undefined;
  }
}
