/**
 * A TCP proxy before a server of MongoDB's protocol, for what can go wrong on the way and behind it: down, slow, half-open,
 * and single commands answered by the test. It reads the messages that pass, so that a test may look at what was sent.
 */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { BSON, type Document } from 'mongodb';

export interface CommandRule {
  /** Which commands; the name is the first key. */
  readonly matches: (command: Document) => boolean;
  /** How many of them; default: all, until `heal`. */
  readonly times?: number;
  /** False: the server never sees the command. True: it does its work, and then the answer is replaced. */
  readonly isForwarded: boolean;
  /** What the client gets: an answer, or the end of its connection. */
  readonly answer: Document | 'cut' | ((original: Document) => Document);
}

export interface MongoProxy {
  readonly port: number;
  /** Commands seen since the last call; those of the driver's monitor are not among them. */
  takeCommands(): Document[];
  /** Ends all connections and refuses new ones. */
  down(): Promise<void>;
  /** From now on each message of the server is held back for so long. */
  slow(delayMs: number): void;
  /** The connections there are stay open and nothing passes on them any more, in either direction; new ones are well. */
  halfOpen(): void;
  /** The same for all, new ones too. */
  freeze(): void;
  /**
   * Holds each writing command back until the one before is answered, whoever sent it. So a server that does not decide
   * races (FerretDB) does, command by command, as much as the adapter relies on.
   */
  oneWriteAtATime(): void;
  /** Answers in the place of the server. */
  stub(rule: CommandRule): void;
  /** Ends the connections that are half-open, takes new ones, forgets all rules. */
  heal(): Promise<void>;
  stop(): Promise<void>;
}

const OP_MSG = 2013;
const HEADER_BYTES = 16;
const WRITES: ReadonlySet<string> = new Set(['insert', 'update', 'delete']);
const COMMANDS_KEPT = 5_000;

export async function startMongoProxy(target: { readonly host: string; readonly port: number }): Promise<MongoProxy> {
  const proxy = new Proxy(target);
  await proxy.listen(0);
  return proxy;
}

class Proxy implements MongoProxy {
  port = 0;
  readonly #target: { readonly host: string; readonly port: number };
  #server: Server | null = null;
  readonly #sockets = new Set<Socket>();
  #rules: { readonly rule: CommandRule; left: number }[] = [];
  #commands: Document[] = [];
  #delayMs = 0;
  #writes: WriteQueue | null = null;
  /** Connections up to this one pass nothing. */
  #frozenUpTo = 0;
  #joined = 0;

  constructor(target: { readonly host: string; readonly port: number }) {
    this.#target = target;
  }

  async listen(port: number): Promise<void> {
    const server = createServer((client) => this.#join(client, connect(this.#target.port, this.#target.host)));
    this.#server = server;
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('the proxy has no port');
    this.port = address.port;
  }

  takeCommands(): Document[] {
    return this.#commands.splice(0);
  }

  async down(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    if (server === null) return;
    const closed = once(server, 'close');
    server.close();
    this.#cut();
    await closed;
  }

  slow(delayMs: number): void {
    this.#delayMs = delayMs;
  }

  halfOpen(): void {
    this.#frozenUpTo = this.#joined;
  }

  freeze(): void {
    this.#frozenUpTo = Infinity;
  }

  oneWriteAtATime(): void {
    this.#writes ??= new WriteQueue();
  }

  stub(rule: CommandRule): void {
    this.#rules.push({ rule, left: rule.times ?? Infinity });
  }

  async heal(): Promise<void> {
    if (this.#frozenUpTo > 0) this.#cut();
    this.#frozenUpTo = 0;
    this.#delayMs = 0;
    this.#rules = [];
    if (this.#server === null) await this.listen(this.port);
  }

  stop(): Promise<void> {
    return this.down();
  }

  #cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #join(client: Socket, server: Socket): void {
    const number = ++this.#joined;
    /** By the id of the request whose answer they replace. */
    const replaced = new Map<number, CommandRule>();
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(from);
      from.setNoDelay(true);
      from.on('error', () => to.destroy());
      from.on('close', () => {
        this.#sockets.delete(from);
        to.destroy();
      });
    }
    eachMessage(client, (message) => {
      if (number <= this.#frozenUpTo) return;
      const command = commandIn(message);
      if (command !== null) {
        if (!isMonitors(command) && this.#commands.length < COMMANDS_KEPT) this.#commands.push(command);
        const rule = this.#ruleFor(command);
        if (rule?.isForwarded === true) replaced.set(message.readInt32LE(4), rule);
        else if (rule !== undefined) return answer(client, rule, message.readInt32LE(4), {});
      }
      if (this.#writes !== null && command !== null && WRITES.has(commandName(command)))
        this.#writes.send(server, message);
      else server.write(message);
    });
    server.on('close', () => this.#writes?.answered(server));
    eachMessage(server, (message) => {
      this.#writes?.answered(server);
      const pass = (): void => {
        if (number <= this.#frozenUpTo || client.destroyed) return;
        const request = message.readInt32LE(8);
        const rule = replaced.get(request);
        replaced.delete(request);
        if (rule === undefined) client.write(message);
        else answer(client, rule, request, commandIn(message) ?? {});
      };
      // Timers of one delay fire in the order of their setting, so messages keep theirs.
      if (this.#delayMs === 0) pass();
      else setTimeout(pass, this.#delayMs);
    });
  }

  #ruleFor(command: Document): CommandRule | undefined {
    const found = this.#rules.find(({ rule, left }) => left > 0 && rule.matches(command));
    if (found !== undefined) found.left -= 1;
    return found?.rule;
  }
}

/** A connection has one command under way at a time, so its next message is the answer. */
class WriteQueue {
  readonly #waiting: (readonly [server: Socket, message: Buffer])[] = [];
  #current: Socket | null = null;

  send(server: Socket, message: Buffer): void {
    this.#waiting.push([server, message]);
    this.#next();
  }

  answered(server: Socket): void {
    if (this.#current !== server) return;
    this.#current = null;
    this.#next();
  }

  #next(): void {
    while (this.#current === null) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      const [server, message] = next;
      if (server.destroyed) continue;
      this.#current = server;
      server.write(message);
    }
  }
}

export function commandName(command: Document): string {
  return Object.keys(command)[0] ?? '';
}

function answer(client: Socket, rule: CommandRule, request: number, original: Document): void {
  if (rule.answer === 'cut') {
    client.destroy();
    return;
  }
  const document = BSON.serialize(typeof rule.answer === 'function' ? rule.answer(original) : rule.answer);
  const message = Buffer.alloc(HEADER_BYTES + 5 + document.byteLength);
  message.writeInt32LE(message.byteLength, 0);
  message.writeInt32LE(request, 8);
  message.writeInt32LE(OP_MSG, 12);
  // Flags and the section's kind are zero.
  message.set(document, HEADER_BYTES + 5);
  client.write(message);
}

/** The document of a message; null for the legacy form, in which the driver only greets. */
function commandIn(message: Buffer): Document | null {
  if (message.readInt32LE(12) !== OP_MSG) return null;
  return BSON.deserialize(message.subarray(HEADER_BYTES + 5), { allowObjectSmallerThanBufferSize: true });
}

function isMonitors(command: Document): boolean {
  return (
    ['hello', 'ismaster', 'isMaster', 'endSessions'].includes(commandName(command)) &&
    command['maxTimeMS'] === undefined
  );
}

/** A message begins with its length. */
function eachMessage(socket: Socket, take: (message: Buffer) => void): void {
  let chunks: Buffer[] = [];
  let bytes = 0;
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    bytes += chunk.byteLength;
    for (;;) {
      const first = chunks[0];
      if (first === undefined || bytes < 4) return;
      if (first.byteLength < 4) chunks = [Buffer.concat(chunks)];
      const length = (chunks[0] ?? first).readInt32LE(0);
      if (bytes < length) return;
      const all = chunks.length === 1 ? (chunks[0] ?? first) : Buffer.concat(chunks);
      take(all.subarray(0, length));
      bytes -= length;
      chunks = bytes === 0 ? [] : [all.subarray(length)];
    }
  });
}
