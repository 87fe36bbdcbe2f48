import type { Bus } from './bus.ts';

export interface LeaseOptions {
  /** At least 1,000. */
  readonly ttlMs: number;
  /** Milliseconds of a clock that never goes back; its reading just before a publish is the renewal's `sentAtMs`. Default: the monotonic clock. */
  readonly now?: (() => number) | undefined;
  /** For each call, read-backs included. Default: a third of the TTL. */
  readonly timeoutMs?: number | undefined;
}

export type RenewResult =
  | { readonly kind: 'accepted'; readonly sentAtMs: number; readonly revision: number }
  /** The lease is over: never renew it again (P5). */
  | { readonly kind: 'lost' }
  /** No answer in time: it may have been renewed or not. Try again. */
  | { readonly kind: 'unanswered'; readonly cause: Error };

export interface Lease {
  readonly bucket: string;
  readonly key: string;
  /** Of the last accepted write. */
  readonly revision: number;
  readonly sentAtMs: number;
  /** Writes `value` (default: the last one) for another TTL. One call at a time (asserted). */
  renew(value?: unknown): Promise<RenewResult>;
  /** Deletes the key if it is still ours; watchers see it as expired. */
  release(): Promise<void>;
}

/** Throws `LeaseHeld`, `BrokerAway`, `RequestTimeout`, `StoreRefused`, `NotPermitted`. */
export declare function acquireLease(bus: Bus, bucket: string, key: string, value: unknown, options: LeaseOptions): Promise<Lease>;
