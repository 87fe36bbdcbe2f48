/** One backup at a time, each in a thread of its own; what became of the last one is remembered until the server stops. */
import { Worker } from 'node:worker_threads';
import type { Backups, BackupState } from '@penstock/gateway';
import { Conflict } from '@penstock/errors';
import type { Log } from '@penstock/telemetry/log';
import type { BusAddress } from '../bus-address.ts';
import type { BackupSettings } from './make-backup.ts';

export interface BackupOrder {
  readonly folder: string;
  readonly settings: BackupSettings;
  readonly busAddress: BusAddress;
}

export type BackupEnd =
  | { readonly files: number; readonly bytes: number; readonly notes: readonly string[] }
  | { readonly problem: string; readonly stack: string };

const WORKER = new URL('./backup-worker.ts', import.meta.url);
const YOUNG_MB_MAX = 24;

export class BackupDesk implements Backups {
  readonly #settings: BackupSettings;
  readonly #busAddress: BusAddress;
  readonly #log: Log;
  #last: BackupState | null = null;
  #running: { readonly worker: Worker; readonly ended: Promise<void> } | null = null;

  constructor(settings: BackupSettings, busAddress: BusAddress, log: Log) {
    this.#settings = settings;
    this.#busAddress = busAddress;
    this.#log = log;
  }

  last(): BackupState | null {
    return this.#last;
  }

  begin(folder: string): BackupState {
    if (this.#running !== null)
      throw new Conflict(`A backup to ${this.#last?.folder ?? '?'} is being made: begin another when it is done.`);
    const begun: BackupState = { folder, startedAt: Date.now() };
    const order: BackupOrder = { folder, settings: this.#settings, busAddress: this.#busAddress };
    const worker = new Worker(WORKER, {
      workerData: order,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB_MAX },
    });
    this.#last = begun;
    this.#log.info({ folder }, 'a backup begins');
    const ended = endOf(worker).then(async (end) => {
      // Nothing of it is left to do, whatever it still holds.
      await worker.terminate();
      this.#running = null;
      this.#last = { ...begun, finishedAt: Date.now(), ...('problem' in end ? { problem: end.problem } : end) };
      if ('problem' in end) this.#log.error({ folder, ...end }, 'a backup failed');
      else this.#log.info({ folder, files: end.files, bytes: end.bytes }, 'a backup is whole');
    });
    this.#running = { worker, ended };
    return begun;
  }

  /** What is being made is left behind without a manifest, and so is none. */
  async close(): Promise<void> {
    if (this.#running === null) return;
    const { worker, ended } = this.#running;
    await worker.terminate();
    await ended;
  }
}

async function endOf(worker: Worker): Promise<BackupEnd> {
  return await new Promise((resolve) => {
    worker.once('message', (end: BackupEnd) => resolve(end));
    worker.once('error', (error: unknown) =>
      resolve({ problem: error instanceof Error ? error.message : String(error), stack: '' }),
    );
    worker.once('exit', () => resolve({ problem: 'the server stopped meanwhile', stack: '' }));
  });
}
