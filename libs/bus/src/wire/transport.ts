/**
 * The way to the broker over TCP. It is the client's own but for the memory of what passes: what comes is read into memory that all
 * connections of a thread share, and cut into messages (`MessageFrames`); what has been sent is given back at once. Left to the
 * collector, a loud log alone would come to a hundred megabytes before it looks.
 */
import { createConnection, type Socket } from 'node:net';
import {
  NatsConnectionImpl,
  type NatsConnection,
  type NodeConnectionOptions,
  setTransportFactory,
} from '@nats-io/transport-node';
import { nodeResolveHost, NodeTransport } from '@nats-io/transport-node/lib/node_transport.js';
import { LARGE_BYTES, MessageFrames } from './message-frames.ts';

const READ_BYTES = 256 * 1024;
/** Each connection has handed on what is in it when the next one reads. */
const readBuffer = Buffer.allocUnsafeSlow(READ_BYTES);

/** As the client's `connect`. */
export function connectByTcp(options: NodeConnectionOptions): Promise<NatsConnection> {
  setTransportFactory({ factory: () => new TcpTransport(), dnsResolveFn: nodeResolveHost });
  return NatsConnectionImpl.connect(options);
}

class TcpTransport extends NodeTransport {
  #frames: MessageFrames | undefined;

  override dial({ hostname, port }: { hostname: string; port: number }): Promise<Socket> {
    return new Promise((resolve, reject) => {
      const onread = { buffer: readBuffer, callback: (bytes: number): boolean => this.#read(socket, bytes) };
      const socket: Socket = createConnection({ host: hostname, port, noDelay: true, onread }, () => {
        socket.removeAllListeners();
        resolve(socket);
      });
      socket.once('error', reject);
      socket.once('close', () => reject(new Error('the connection to the broker was closed')));
    });
  }

  /** Behind the greeting. Over TLS the socket that is read is another one, which has bytes of its own. */
  override setupHandlers(): void {
    super.setupHandlers();
    const frames = new MessageFrames((frame) => {
      this.yields.push(frame);
      this.signal.resolve();
    });
    this.#frames = frames;
    this.socket.removeAllListeners('data');
    this.socket.on('data', (bytes: Buffer) => this.#cut(frames, bytes));
  }

  /** Large is only what the client has put together for this one write: what it says more than once is short. */
  override _send(frame: Uint8Array): Promise<void> {
    const sent = super._send(frame);
    const { buffer, byteLength } = frame;
    if (byteLength >= LARGE_BYTES && buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) {
      const giveBack = (): void => void buffer.transfer(0);
      sent.then(giveBack, giveBack);
    }
    return sent;
  }

  #read(socket: Socket, count: number): boolean {
    const bytes = readBuffer.subarray(0, count);
    if (this.#frames === undefined) socket.emit('data', Buffer.from(bytes));
    else this.#cut(this.#frames, bytes);
    return true;
  }

  #cut(frames: MessageFrames, bytes: Buffer): void {
    try {
      frames.push(bytes);
    } catch (error) {
      this.socket.destroy(error as Error);
    }
  }
}
