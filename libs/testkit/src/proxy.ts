/**
 * A TCP proxy between a client and a broker, for what happens to messages on the way: in a blackhole they are lost
 * while both sides still believe in the connection; a cut ends all connections. New ones pass as if nothing had been, unless
 * it is shut. It may stand before any other server of TCP as well.
 */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

export interface Proxy {
  readonly url: string;
  readonly port: number;
  /** From now on bytes in this direction are thrown away, until the next `cut`. */
  blackhole(direction: 'to-broker' | 'to-client'): void;
  /** Ends all connections, and each new one at once, until the next `cut`. */
  shut(): void;
  /** From now on whatever the broker sends is held back for so long, until the next `cut`. */
  slow(delayMs: number): void;
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
  #dropped: 'to-broker' | 'to-client' | null = null;
  #isShut = false;
  #delayMs = 0;

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

  blackhole(direction: 'to-broker' | 'to-client'): void {
    this.#dropped = direction;
  }

  shut(): void {
    this.cut();
    this.#isShut = true;
  }

  slow(delayMs: number): void {
    this.#delayMs = delayMs;
  }

  cut(): void {
    this.#dropped = null;
    this.#isShut = false;
    this.#delayMs = 0;
    for (const socket of this.#sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    this.cut();
    const closed = once(this.#server, 'close');
    this.#server.close();
    await closed;
  }

  #join(client: Socket, broker: Socket): void {
    const pass = (from: Socket, to: Socket, direction: 'to-broker' | 'to-client'): void => {
      this.#sockets.add(from);
      from.setNoDelay(true);
      from.on('data', (bytes) => {
        if (this.#dropped === direction) return;
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
