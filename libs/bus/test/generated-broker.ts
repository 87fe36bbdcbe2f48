/** A broker with the accounts that `deploy/nats/generate.ts` makes, and connections as each of their users. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { startTestBroker, type TestBroker } from '@penstock/testkit';
import { connectBus, encodeChunk, inboxPrefixOf, readChunks, type Bus, type StoredChunk } from '../src/index.ts';

const GENERATOR = join(import.meta.dirname, '../../../deploy/nats/generate.ts');
export const MIB = 1024 * 1024;
export const streamsOptions = { partitions: 4, journalBytesMax: 64 * MIB, logsBytesMax: 64 * MIB };
/** Far beyond any test: a refusal that came by time would fail it. */
export const patient = { timeoutMs: 120_000 };
export const soon = { timeoutMs: 10_000 };
/** The same for the bare client. */
export const timely = { timeout: 10_000 };

export class GeneratedBroker {
  readonly folder: string;
  /** A line of configuration that has the accounts: the server reads an included file from the folder of its own. */
  readonly config: string;
  /** Closed after each test. */
  readonly opened: { close(): Promise<void> }[] = [];
  #broker: TestBroker | undefined;

  private constructor(folder: string) {
    this.folder = folder;
    this.config = `include "../${basename(folder)}/accounts.conf"`;
  }

  static async start(runners: string): Promise<GeneratedBroker> {
    const made = new GeneratedBroker(await mkdtemp(join(tmpdir(), 'penstock-permissions-')));
    await made.generate(runners);
    made.#broker = await startTestBroker({ config: made.config });
    return made;
  }

  get url(): string {
    return this.#broker?.url ?? '';
  }

  /** Reads what was generated since. */
  reload(): void {
    if (this.#broker !== undefined) process.kill(this.#broker.pid, 'SIGHUP');
  }

  async generate(runners: string): Promise<void> {
    await promisify(execFile)(process.execPath, [GENERATOR, '--runners', runners, '--out', this.folder]);
  }

  async passwordOf(user: string): Promise<string> {
    return (await readFile(join(this.folder, 'credentials', user), 'utf8')).trim();
  }

  async busOf(user: string, servers = this.url): Promise<Bus> {
    const bus = await connectBus({
      servers,
      user,
      pass: await this.passwordOf(user),
      name: user,
      inboxPrefix: inboxPrefixOf(user),
    });
    this.opened.push({ close: () => bus.close(0) });
    return bus;
  }

  async rawOf(user: string): Promise<NatsConnection> {
    const raw = await connect({
      servers: this.url,
      user,
      pass: await this.passwordOf(user),
      inboxPrefix: inboxPrefixOf(user),
    });
    this.opened.push(raw);
    return raw;
  }

  async closeOpened(): Promise<void> {
    await Promise.all(this.opened.splice(0).map((each) => each.close()));
  }

  async stop(): Promise<void> {
    await this.#broker?.stop();
    await rm(this.folder, { recursive: true, force: true });
  }
}

export const chunk = (offset: number): Uint8Array =>
  encodeChunk({ stage: 'build', attempt: 1, offset, at: 1, parts: [['stdout', 2]], output: Buffer.from('x\n') });

export async function chunksOf(bus: Bus, runId: string): Promise<StoredChunk[]> {
  return await Array.fromAsync(readChunks(bus, runId, 1));
}

/** Resolves with the broker's refusal. */
export async function subscribing(raw: NatsConnection, subject: string): Promise<Error | null> {
  const { promise, resolve } = Promise.withResolvers<Error | null>();
  raw.subscribe(subject, { callback: (error) => resolve(error) });
  // A refusal comes before the answer to this.
  await raw.flush();
  resolve(null);
  return await promise;
}
