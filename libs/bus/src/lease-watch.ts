import type { Bus } from './bus.ts';

export type LeaseEvent<V> =
  | { readonly kind: 'put'; readonly key: string; readonly value: V; readonly revision: number }
  /** The broker's marker (`revision` is the marker's), or the key was gone when the watch began anew (then 0). */
  | { readonly kind: 'expired'; readonly key: string; readonly revision: number };

export interface LeaseWatch {
  /** Resolves when the values at the start have all been handled. */
  readonly ready: Promise<void>;
  /** While false the picture may be old: the watch is being set up anew. */
  readonly current: boolean;
  stop(): void;
}

export declare function watchLeases<V>(bus: Bus, bucket: string, handler: (event: LeaseEvent<V>) => void): LeaseWatch;
