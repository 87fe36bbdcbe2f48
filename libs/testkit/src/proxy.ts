/**
 * A TCP proxy between a client and a broker, for what happens to messages on the way: in a blackhole they are lost
 * while both sides still believe in the connection; a cut ends all connections. New ones pass as if nothing had been, unless
 * it is shut. It may stand before any other server of TCP as well.
 */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { NatsMessages, type NatsMessage } from './nats-messages.ts';

export type Direction = 'to-broker' | 'to-client';
/** Whether a message is held back. Those behind it pass. */
export type HoldsBack = (message: NatsMessage, direction: Direction) => boolean;

export interface Proxy {
  readonly url: string;
  readonly port: number;
  /** From now on bytes in this direction are thrown away, until the next `cut`. */
  blackhole(direction: Direction): void;
  /** Ends all connections, and each new one at once, until the next `cut`. */
  shut(): void;
  /** From now on whatever the broker sends is held back for so long, until the next `cut`. */
  slow(delayMs: number): void;
  /** Ends all connections; each message of later ones is shown to this, until it is given none. */
  look(holdsBack: HoldsBack | null): void;
  /** What was held back goes on its way, where its connection still stands. */
  letGo(): void;
  cut(): void;
  stop(): Promise<void>;
}

export async function startProxy(brokerPort: number): Promise<Proxy> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return new TcpProxy(server, brokerPort);
}

class TcpProxy implements Proxy {
  readonly url: string;
  readonly port: number;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #dropped: Direction | null = null;
  #isShut = false;
  #delayMs = 0;
  #holdsBack: HoldsBack | null = null;
  #held: (() => void)[] = [];

  constructor(server: Server, brokerPort: number) {
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('the proxy has no port');
    this.port = address.port;
    this.url = `nats://127.0.0.1:${address.port}`;
    this.#server = server;
    server.on('connection', (client) => {
      if (this.#isShut) client.destroy();
      else this.#join(client, connect(brokerPort, '127.0.0.1'));
    });
  }

  blackhole(direction: Direction): void {
    this.#dropped = direction;
  }

  shut(): void {
    this.cut();
    this.#isShut = true;
  }

  slow(delayMs: number): void {
    this.#delayMs = delayMs;
  }

  look(holdsBack: HoldsBack | null): void {
    this.cut();
    this.#holdsBack = holdsBack;
  }

  letGo(): void {
    for (const send of this.#held.splice(0)) send();
  }

  cut(): void {
    this.#dropped = null;
    this.#isShut = false;
    this.#delayMs = 0;
    this.#held = [];
    for (const socket of this.#sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    this.cut();
    const closed = once(this.#server, 'close');
    this.#server.close();
    await closed;
  }

  #join(client: Socket, broker: Socket): void {
    const holdsBack = this.#holdsBack;
    const pass = (from: Socket, to: Socket, direction: Direction): void => {
      this.#sockets.add(from);
      from.setNoDelay(true);
      const messages = new NatsMessages();
      from.on('data', (bytes: Buffer) => {
        if (this.#dropped === direction) return;
        if (holdsBack !== null) {
          for (const piece of messages.take(bytes)) {
            const send = (): void => void (to.destroyed || to.write(piece.bytes));
            if (piece.message !== undefined && holdsBack(piece.message, direction)) this.#held.push(send);
            else send();
          }
          return;
        }
        // Timers of one length fire in their order, so the bytes keep theirs until `cut` ends the connection.
        if (this.#delayMs > 0 && direction === 'to-client') setTimeout(() => to.write(bytes), this.#delayMs);
        else to.write(bytes);
      });
      from.on('error', () => to.destroy());
      from.on('close', () => {
        this.#sockets.delete(from);
        to.destroy();
      });
    };
    pass(client, broker, 'to-broker');
    pass(broker, client, 'to-client');
  }
}
