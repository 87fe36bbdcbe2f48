import type { RunEvent, RunState } from '@penstock/run';

/** A run by its committed events alone. */
export interface RunTruth {
  readonly id: string;
  readonly partition: number;
  state: RunState;
  events: RunEvent[];
  /** After which commit it had which version. */
  readonly versions: { readonly sequence: number; readonly version: number }[];
  /** The highest version that any client has seen. */
  observed: number;
  storedVersion: number;
  /** Beginnings of attempts that clients were told of. */
  readonly told: Set<string>;
  /** Of each stage: when, and in which epoch, the commit was stored that began its present wait. */
  readonly waits: Map<string, { readonly at: number; readonly epoch: number }>;
}
