/** A client of a log stream, as a browser's EventSource reads it: fields up to a blank line make a message. */
import { request, type IncomingMessage } from 'node:http';

export interface SseMessage {
  readonly id: string;
  readonly event: string;
  readonly data: Record<string, unknown>;
}

export class SseClient {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly messages: SseMessage[] = [];
  readonly comments: string[] = [];
  readonly retries: number[] = [];
  /** Everything that was received, or null where a test does not want it. */
  readonly ended: Promise<void>;
  readonly #response: IncomingMessage;
  readonly #watchers = new Set<() => void>();
  #rest = '';

  private constructor(response: IncomingMessage) {
    this.#response = response;
    this.status = response.statusCode ?? 0;
    this.headers = response.headers;
    response.setEncoding('utf8');
    response.on('data', (text: string) => this.#take(text));
    response.on('error', () => {});
    this.ended = new Promise((resolve) => response.on('close', resolve));
  }

  static open(
    url: string,
    options: {
      readonly token?: string;
      readonly lastEventId?: string;
      readonly origin?: string;
      readonly forwardedFor?: string;
    } = {},
  ): Promise<SseClient> {
    return new Promise((resolve, reject) => {
      const headers = {
        accept: 'text/event-stream',
        ...(options.token === undefined ? {} : { authorization: `Bearer ${options.token}` }),
        ...(options.lastEventId === undefined ? {} : { 'last-event-id': options.lastEventId }),
        ...(options.forwardedFor === undefined ? {} : { 'x-forwarded-for': options.forwardedFor }),
        ...(options.origin === undefined ? {} : { origin: options.origin }),
      };
      const outgoing = request(url, { headers, agent: false }, (response) => resolve(new SseClient(response)));
      outgoing.on('error', reject);
      outgoing.end();
    });
  }

  /** Resolves when the condition holds; it is looked at with each message. */
  async until(condition: (client: SseClient) => boolean): Promise<void> {
    if (condition(this)) return;
    await new Promise<void>((resolve, reject) => {
      const look = (): void => {
        if (!condition(this)) return;
        this.#watchers.delete(look);
        resolve();
      };
      this.#watchers.add(look);
      void this.ended.then(() =>
        condition(this) ? resolve() : reject(new Error(`the stream ended after ${this.outline().join(', ')}`)),
      );
    });
  }

  async count(messages: number): Promise<void> {
    await this.until(() => this.messages.length >= messages);
  }

  /** `event stage` or `stage| line`, one a message. */
  outline(): string[] {
    return this.messages.map(({ event, data }) => {
      if (event !== 'stage_log') return [event, data['stage']].filter((part) => part !== undefined).join(' ');
      return `${String(data['stage'])}${data['stream'] === 'system' ? '!' : '|'} ${String(data['line'])}`;
    });
  }

  get lastId(): string {
    return this.messages.at(-1)?.id ?? '';
  }

  pause(): void {
    this.#response.pause();
  }

  resume(): void {
    this.#response.resume();
  }

  close(): void {
    this.#response.destroy();
  }

  #take(text: string): void {
    const blocks = (this.#rest + text).split('\n\n');
    this.#rest = blocks.pop() ?? '';
    for (const block of blocks) this.#takeBlock(block);
    for (const watcher of [...this.#watchers]) watcher();
  }

  #takeBlock(block: string): void {
    const fields = new Map<string, string>();
    for (const line of block.split('\n')) {
      const colon = line.indexOf(':');
      if (colon === 0) this.comments.push(line.slice(1).trim());
      else fields.set(line.slice(0, colon), line.slice(colon + 1).replace(/^ /u, ''));
    }
    const retry = fields.get('retry');
    if (retry !== undefined) this.retries.push(Number(retry));
    const data = fields.get('data');
    if (data !== undefined)
      this.messages.push({
        id: fields.get('id') ?? '',
        event: fields.get('event') ?? '',
        data: JSON.parse(data) as Record<string, unknown>,
      });
  }
}
