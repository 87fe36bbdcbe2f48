/**
 * What the services beside a stage print, as the API gives it: followed while the stage runs, from where a connection broke. A
 * container's log is kept by its node, which may have thrown the oldest of it away before it was read: that of a service is best
 * effort, unlike the stage's own.
 */
import { backoffMs, pauseOrAbort, within } from '@penstock/async';
import type { Cluster } from '../cluster/cluster.ts';
import { LogResume } from './log-resume.ts';

const RETRY = { firstMs: 200, maxMs: 5_000 };
/** For what was printed last, when the stage has ended. */
const LAST_MS_MAX = 3_000;

export interface ServiceLogsOptions {
  readonly cluster: Cluster;
  readonly pod: string;
  /** `key`: by which the line is known again. */
  readonly take: (service: string, bytes: Buffer, key: string | undefined) => void | Promise<void>;
  /** By service: the keys of lines that an earlier process has taken. */
  readonly taken: ReadonlyMap<string, readonly string[]>;
  readonly signal: AbortSignal;
}

export class ServiceLogs {
  readonly #options: ServiceLogsOptions;
  readonly #followed = new Map<string, { readonly resume: LogResume; readonly following: Promise<void> }>();
  readonly #ended = new AbortController();

  constructor(options: ServiceLogsOptions) {
    this.#options = options;
    options.signal.addEventListener('abort', () => this.#ended.abort(), { once: true });
  }

  /** Idempotent. */
  follow(service: string): void {
    if (this.#followed.has(service) || this.#ended.signal.aborted) return;
    const resume = new LogResume(this.#options.taken.get(service));
    this.#followed.set(service, { resume, following: this.#follow(service, resume) });
  }

  /** Reads what is there by now, and no more. Never rejects. */
  async end(): Promise<void> {
    this.#ended.abort();
    const last = [...this.#followed].map(async ([service, { resume, following }]) => {
      await following;
      await this.#read(service, resume, false).catch(() => {});
    });
    await within(LAST_MS_MAX, Promise.all(last), () => {});
  }

  async #follow(service: string, resume: LogResume): Promise<void> {
    const { signal } = this.#ended;
    for (let failures = 1; !signal.aborted; failures += 1) {
      await this.#read(service, resume, true).catch(() => {});
      await pauseOrAbort(backoffMs(failures, RETRY), signal);
    }
  }

  async #read(service: string, resume: LogResume, follow: boolean): Promise<void> {
    const { cluster, pod, take } = this.#options;
    const signal = follow ? this.#ended.signal : AbortSignal.timeout(LAST_MS_MAX);
    resume.begin();
    const log = await cluster.readLog(pod, `service-${service}`, { sinceTime: resume.sinceTime, follow, signal });
    for await (const piece of log as AsyncIterable<Buffer>) {
      for (const line of resume.push(piece)) {
        const written = take(service, line.bytes, line.key);
        if (written !== undefined) await written;
      }
    }
  }
}
