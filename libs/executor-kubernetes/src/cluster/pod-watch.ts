/**
 * The Pods of one session as they change: a list, then a watch from there, and again whenever that ends. What was missed meanwhile
 * shows in the list; a Pod that is in none any more is told as gone, once.
 */
import { backoffMs, pauseOrAbort } from '@penstock/async';
import type { V1Pod } from '@kubernetes/client-node';
import type { Cluster } from './cluster.ts';

const BACKOFF = { firstMs: 100, maxMs: 2_000 };

export interface PodListener {
  onPod(pod: V1Pod): void;
  onGone(last: V1Pod | null): void;
}

export interface PodWatchOptions {
  readonly cluster: Cluster;
  readonly selector: string;
  readonly warn: (error: unknown, message: string) => void;
}

export class PodWatch {
  readonly #options: PodWatchOptions;
  readonly #listeners = new Map<string, PodListener>();
  readonly #over = new AbortController();
  #watching: Promise<void> | null = null;

  constructor(options: PodWatchOptions) {
    this.#options = options;
  }

  /** From the Pod's creation on: what is known of it then is told by the caller. */
  add(name: string, listener: PodListener): void {
    this.#listeners.set(name, listener);
    this.#watching ??= this.#watch();
  }

  remove(name: string): void {
    this.#listeners.delete(name);
  }

  async close(): Promise<void> {
    this.#over.abort();
    await this.#watching;
  }

  async #watch(): Promise<void> {
    const { signal } = this.#over;
    for (let failures = 0; !signal.aborted;) {
      try {
        const version = await this.#list();
        failures = 0;
        await this.#options.cluster.watchPods(
          this.#options.selector,
          version,
          ({ type, pod }) => this.#tell(type, pod),
          signal,
        );
      } catch (error) {
        if (signal.aborted) return;
        failures += 1;
        // A cluster that restarts is told of once it is more than that.
        if (failures === 5) this.#options.warn(error, 'the Pods of this runner cannot be watched; it is tried again');
      }
      await pauseOrAbort(backoffMs(failures + 1, BACKOFF), signal);
    }
  }

  async #list(): Promise<string> {
    const { cluster, selector } = this.#options;
    const known = new Set(this.#listeners.keys());
    const { pods, version } = await cluster.listPods(selector);
    for (const pod of pods) {
      known.delete(pod.metadata?.name ?? '');
      this.#tell('put', pod);
    }
    for (const name of known) this.#listeners.get(name)?.onGone(null);
    return version;
  }

  #tell(type: 'put' | 'gone', pod: V1Pod): void {
    const listener = this.#listeners.get(pod.metadata?.name ?? '');
    if (type === 'put') listener?.onPod(pod);
    else listener?.onGone(pod);
  }
}
