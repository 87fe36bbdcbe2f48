/** As much of a WebSocket server as an `exec` of an API server needs: binary messages both ways, and the end. */
import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';

const PROTOCOL = 'v5.channel.k8s.io';
const BINARY = 2;
const CLOSE = 8;

export class FakeSocket {
  onMessage: (bytes: Buffer) => void = () => {};
  onClose: () => void = () => {};
  readonly #stream: Duplex;
  #received: Buffer = Buffer.alloc(0);

  constructor(request: IncomingMessage, stream: Duplex) {
    this.#stream = stream;
    const accept = createHash('sha1')
      .update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
      .digest('base64');
    stream.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\nSec-WebSocket-Protocol: ${PROTOCOL}\r\n\r\n`,
    );
    stream.on('data', (bytes: Buffer) => this.#onData(bytes));
    stream.on('error', () => {});
    stream.once('close', () => this.onClose());
  }

  send(bytes: Uint8Array): void {
    const { length } = bytes;
    const head =
      length < 126 ? Buffer.from([0x80 | BINARY, length]) : Buffer.from([0x80 | BINARY, 127, ...sizeOf(length)]);
    if (!this.#stream.destroyed) this.#stream.write(Buffer.concat([head, bytes]));
  }

  close(): void {
    this.#stream.destroy();
  }

  /** Clients mask what they send. */
  #onData(bytes: Buffer): void {
    this.#received = Buffer.concat([this.#received, bytes]);
    for (;;) {
      const received = this.#received;
      if (received.length < 2) return;
      const short = received.readUInt8(1) & 0x7f;
      const at = short < 126 ? 2 : short === 126 ? 4 : 10;
      if (received.length < at + 4) return;
      const length =
        short < 126 ? short : short === 126 ? received.readUInt16BE(2) : Number(received.readBigUInt64BE(2));
      if (received.length < at + 4 + length) return;
      const mask = received.subarray(at, at + 4);
      const payload = Buffer.from(received.subarray(at + 4, at + 4 + length));
      for (let index = 0; index < payload.length; index += 1)
        payload[index] = (payload[index] ?? 0) ^ (mask[index % 4] ?? 0);
      this.#received = received.subarray(at + 4 + length);
      const kind = received.readUInt8(0) & 0x0f;
      if (kind === CLOSE) return this.close();
      if (kind === BINARY) this.onMessage(payload);
    }
  }
}

function sizeOf(length: number): Buffer {
  const size = Buffer.alloc(8);
  size.writeBigUInt64BE(BigInt(length));
  return size;
}
