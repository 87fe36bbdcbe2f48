/** What a stream's leader says of it, and whether it is sure to lead. */
import type { Wire } from '../wire/wire.ts';
import { api } from './stored.ts';

/**
 * The broker's copies campaign after four seconds of silence at the earliest (`minElectionTimeout`), and answer a leader that is idle
 * every two.
 */
const HEARD_WITHIN_MS = 3_000;
const MS_NANOS = 1e6;

export interface StreamInfo {
  /** The broker's time as of the answer. */
  readonly ts?: string;
  readonly state: {
    readonly messages: number;
    readonly first_seq: number;
    readonly last_seq: number;
    /** Sequences between the first and the last that have no message any more, if asked for (`deleted_details`). */
    readonly deleted?: readonly number[] | null;
    /** How many messages each has, of those that were asked for. */
    readonly subjects?: Readonly<Record<string, number>>;
  };
  readonly cluster?: { readonly replicas?: readonly Copy[] };
  /** How many subjects there are, of which an answer names 100,000. */
  readonly total?: number;
}

interface Copy {
  readonly current: boolean;
  readonly offline?: boolean;
  /** Nanoseconds since its last answer. */
  readonly active: number;
}

/** From the stream's leader, or who takes itself for it. `more`: what else it is asked. */
export function streamInfo(wire: Wire, stream: string, timeoutMs: number, more?: object): Promise<StreamInfo> {
  return api<StreamInfo>(wire, `STREAM.INFO.${stream}`, more, timeoutMs);
}

/** Whether no other can have been elected: who leads has heard from most of them, itself among them, just now. */
export function isSure({ cluster }: StreamInfo): boolean {
  const copies = cluster?.replicas ?? [];
  const heard = copies.filter(
    ({ current, offline, active }) => current && offline !== true && active < HEARD_WITHIN_MS * MS_NANOS,
  );
  return heard.length + 1 > (copies.length + 1) / 2;
}

/** Of an answer with `deleted_details`. */
export function hasSequence({ state }: StreamInfo, sequence: number): boolean {
  return state.first_seq <= sequence && sequence <= state.last_seq && !(state.deleted ?? []).includes(sequence);
}
