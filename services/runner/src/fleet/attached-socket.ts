/**
 * A WebSocket that attaches its runner before it opens. It is there at once, and whatever fails on the way is an error of it, as
 * the broker's client wants: that waits for the end of each socket, and for one that never came it would wait for ever.
 */

type Handler<E> = ((event: E) => void) | null;

export class AttachedSocket {
  binaryType: WebSocket['binaryType'] = 'arraybuffer';
  onopen: Handler<unknown> = null;
  onmessage: Handler<{ readonly data: unknown }> = null;
  onerror: Handler<{ readonly message: string }> = null;
  onclose: Handler<{ readonly wasClean: boolean; readonly reason: string }> = null;
  #socket: WebSocket | null = null;
  #isClosed = false;

  /** `open`: rejects where the runner cannot be attached. */
  constructor(open: () => Promise<WebSocket>) {
    open().then(
      (socket) => this.#follow(socket),
      (error: unknown) => this.#fail(error instanceof Error ? error.message : String(error)),
    );
  }

  get bufferedAmount(): number {
    return this.#socket?.bufferedAmount ?? 0;
  }

  send(data: ArrayBuffer): void {
    this.#socket?.send(data);
  }

  close(): void {
    if (this.#socket !== null) this.#socket.close();
    else if (!this.#isClosed) queueMicrotask(() => this.#end({ wasClean: true, reason: '' }));
  }

  #follow(socket: WebSocket): void {
    // Closed meanwhile: nobody waits for this one.
    if (this.#isClosed) return socket.close();
    this.#socket = socket;
    socket.binaryType = this.binaryType;
    socket.addEventListener('open', (event) => this.onopen?.(event));
    socket.addEventListener('message', (event) => this.onmessage?.(event));
    socket.addEventListener('error', () => this.onerror?.({ message: 'the connection to the server failed' }));
    socket.addEventListener('close', ({ wasClean, reason }) => this.#end({ wasClean, reason }));
  }

  #fail(message: string): void {
    if (this.#isClosed) return;
    this.onerror?.({ message });
    this.#end({ wasClean: false, reason: message });
  }

  #end(event: { readonly wasClean: boolean; readonly reason: string }): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.onclose?.(event);
  }
}
