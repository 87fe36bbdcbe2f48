/** A loopback HTTP server with a table of answers; it remembers what was asked of it. */
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

export type Answer = Buffer | string | number | ((request: IncomingMessage, response: ServerResponse) => void);

export class FileServer {
  readonly answers = new Map<string, Answer>();
  /** Every request as `METHOD address`, in order. */
  readonly asked: string[] = [];
  /** The Authorization header of each request, in order. */
  readonly authorizations: (string | undefined)[] = [];
  readonly #server: Server;
  readonly #tunnels = new Set<Socket>();

  private constructor() {
    this.#server = createServer((request, response) => {
      this.asked.push(`${request.method} ${request.url}`);
      this.authorizations.push(request.headers.authorization);
      const answer = this.answers.get(request.url ?? '') ?? 404;
      if (typeof answer === 'function') answer(request, response);
      else if (typeof answer === 'number') response.writeHead(answer).end();
      else
        response
          .writeHead(200, {
            'content-type':
              typeof answer === 'string' && answer.startsWith('{')
                ? 'application/vnd.pypi.simple.v1+json'
                : 'text/html',
          })
          .end(answer);
    });
    this.#server.on('connect', (request, socket) => {
      this.asked.push(`CONNECT ${request.url}`);
      socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
    });
    this.#server.on('connection', (socket) => {
      this.#tunnels.add(socket);
      socket.on('close', () => this.#tunnels.delete(socket));
    });
  }

  static async start(): Promise<FileServer> {
    const server = new FileServer();
    const { promise, resolve } = Promise.withResolvers<void>();
    server.#server.listen(0, '127.0.0.1', resolve);
    await promise;
    return server;
  }

  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get url(): string {
    return `http://${this.host}`;
  }

  async stop(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    for (const socket of this.#tunnels) socket.destroy();
    await promise;
  }
}
