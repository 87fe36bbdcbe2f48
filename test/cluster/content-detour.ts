/**
 * What stands between a runner and the registry's port for large contents, for one content: it reads nothing of it, and stops it
 * halfway, or the answer to it, until it is let go. It owns its port and its connections.
 */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

export interface DetourOptions {
  /** What is held back: the second half of the content, or what is said once all of it has come. */
  readonly holds: 'rest' | 'answer';
  /** It is held back from now on. */
  readonly reached: () => void;
}

interface Line {
  letGo(): void;
  end(): void;
}

export class ContentDetour {
  readonly #server: Server;
  readonly #options: DetourOptions;
  readonly #lines = new Set<Line>();
  #to = { port: 0, sizeBytes: 0 };
  #isOver = false;

  private constructor(server: Server, options: DetourOptions) {
    this.#server = server;
    this.#options = options;
    server.on('connection', (runner) => this.#join(runner));
  }

  static async open(options: DetourOptions): Promise<ContentDetour> {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    // A test that has failed closes nothing.
    server.unref();
    return new ContentDetour(server, options);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Whither the next connection leads, and the size of what goes there. */
  toward(port: number, sizeBytes: number): void {
    this.#to = { port, sizeBytes };
  }

  /** What was held back goes on its way, where both ends live, and all that comes passes. */
  letGo(): void {
    this.#isOver = true;
    for (const line of this.#lines) line.letGo();
  }

  close(): void {
    for (const line of this.#lines) line.end();
    this.#server.close();
  }

  #join(runner: Socket): void {
    const { port, sizeBytes } = this.#to;
    const keeper = connect(port, '127.0.0.1');
    const held: { readonly rest: Buffer[]; readonly answer: Buffer[] } = { rest: [], answer: [] };
    let isHeld = false;
    let hasEnded = false;
    let sentBytes = 0;
    const holds = (which: DetourOptions['holds'], afterBytes: number): boolean => {
      if (this.#isOver || which !== this.#options.holds || sentBytes < afterBytes) return false;
      if (!isHeld) this.#options.reached();
      isHeld = true;
      return true;
    };
    runner.on('data', (bytes: Buffer) => {
      sentBytes += bytes.length;
      if (holds('rest', sizeBytes / 2)) held.rest.push(bytes);
      else keeper.write(bytes);
    });
    keeper.on('data', (bytes: Buffer) => {
      if (holds('answer', sizeBytes)) held.answer.push(bytes);
      else runner.write(bytes);
    });
    const line: Line = {
      letGo: () => {
        isHeld = false;
        for (const bytes of held.rest.splice(0)) keeper.write(bytes);
        for (const bytes of held.answer.splice(0)) runner.write(bytes);
        if (hasEnded) runner.end();
      },
      end: () => {
        runner.destroy();
        keeper.destroy();
      },
    };
    this.#lines.add(line);
    runner.on('error', () => {});
    keeper.on('error', () => {});
    // What is held back of a runner that is gone never comes.
    runner.on('close', () => keeper.destroy());
    keeper.on('close', () => {
      hasEnded = true;
      if (!isHeld || this.#options.holds === 'rest') runner.end();
    });
  }
}
