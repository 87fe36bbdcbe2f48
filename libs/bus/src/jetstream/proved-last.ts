/**
 * The last messages of some subjects, with proof that there are no later ones (P21).
 *
 * Who leads a stream answers for it by itself, and one that was cut off from the others goes on doing so for seconds after they have
 * elected another, without what has been stored since (nats-server 2.15.1: for some three). It does say for how long it has not heard
 * from whom, though, and nobody is elected before the others have not heard from it for four seconds. So the end of the stream counts
 * that a leader names who has just heard from most; and the answer of a copy, any of them, that has looked as far as that.
 */
import type { Wire } from '../wire/wire.ts';
import { api, batchUpTo, leaderMessage, type StoredMessage } from './stored.ts';

/**
 * The broker's copies campaign after four seconds of silence at the earliest (`minElectionTimeout`), and answer a leader that is idle
 * every two.
 */
const HEARD_WITHIN_MS = 3_000;
const MS_NANOS = 1e6;

interface Copy {
  readonly current: boolean;
  readonly offline?: boolean;
  /** Nanoseconds since its last answer. */
  readonly active: number;
}

interface Info {
  readonly state: { readonly messages: number; readonly last_seq: number };
  readonly cluster?: { readonly replicas?: readonly Copy[] };
}

/**
 * The last message of each subject that `wanted` covers, `most` of them at most; null: no leader is sure, or the copy that answered is
 * behind it, so ask again. `wanted` ends with a wildcard, `all` covers every subject of the stream. Throws what a request throws, and
 * `StoreRefused`.
 */
export async function provedLast(
  wire: Wire,
  stream: string,
  wanted: string,
  all: string,
  most: number,
  timeoutMs: number,
): Promise<readonly StoredMessage[] | null> {
  const state = await sureState(wire, stream, timeoutMs);
  if (state === null) return null;
  if (state.messages === 0) return [];
  const found = await batchUpTo(wire, stream, { multi_last: [wanted], batch: most }, timeoutMs);
  if (found.messages.length > 0) return found.upTo < state.last_seq ? null : found.messages;
  // A copy that finds nothing does not say how far it has looked: it is asked for something else as well. Not before: it would look through
  // all that stands between the two. The last one may be gone, and to find what stands before it is looked for among all subjects.
  const other =
    (await leaderMessage(wire, stream, { seq: state.last_seq }, timeoutMs)) ??
    (await leaderMessage(wire, stream, { last_by_subj: all }, timeoutMs));
  const request = { multi_last: other === null ? [wanted] : [wanted, other.subject], batch: most };
  const { messages, upTo } = await batchUpTo(wire, stream, request, timeoutMs);
  if (upTo < state.last_seq) return null;
  return messages.filter(({ subject }) => subject.startsWith(wanted.slice(0, -1)));
}

/**
 * As `provedLast`, the sequence of the last message of all that `wanted` covers, 0: there is none. Of more subjects than a copy answers for:
 * the leader says it, and one is sure to be it before and afterwards. A side that was cut off seconds ago might still be the one that answers in between.
 */
export async function provedEnd(wire: Wire, stream: string, wanted: string, timeoutMs: number): Promise<number | null> {
  if ((await sureState(wire, stream, timeoutMs)) === null) return null;
  const last = await leaderMessage(wire, stream, { last_by_subj: wanted }, timeoutMs);
  if ((await sureState(wire, stream, timeoutMs)) === null) return null;
  return last?.sequence ?? 0;
}

/** As its leader says it; null: no leader is sure to be it. */
async function sureState(wire: Wire, stream: string, timeoutMs: number): Promise<Info['state'] | null> {
  const { state, cluster } = await api<Info>(wire, `STREAM.INFO.${stream}`, undefined, timeoutMs);
  return isSure(cluster?.replicas ?? []) ? state : null;
}

/** Whether no other can have been elected: it has heard from most of them, itself among them, just now. */
function isSure(copies: readonly Copy[]): boolean {
  const heard = copies.filter(
    ({ current, offline, active }) => current && offline !== true && active < HEARD_WITHIN_MS * MS_NANOS,
  );
  return heard.length + 1 > (copies.length + 1) / 2;
}
