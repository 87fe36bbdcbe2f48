/**
 * The last messages of some subjects, with proof that there are no later ones (P21).
 *
 * Who leads a stream answers for it by itself, and one that was cut off from the others goes on doing so for seconds after they have
 * elected another, without what has been stored since (nats-server 2.15.1: for some three). It does say for how long it has not heard
 * from whom, though, and nobody is elected before the others have not heard from it for four seconds. So the end of the stream counts
 * that a leader names who has just heard from most; and the answer of a copy, any of them, that has looked as far as that.
 */
import type { Wire } from '../wire/wire.ts';
import { lastOf, lastOfEach, type LastMessage } from './last-of-each.ts';
import { leaderMessage } from './stored.ts';
import { isSure, streamInfo } from './stream-info.ts';

export interface LastWanted {
  readonly stream: string;
  /** Ends with a wildcard. */
  readonly wanted: string;
  /** Covers every subject of the stream. */
  readonly all: string;
  readonly timeoutMs: number;
}

/**
 * The last message of each subject that `wanted` covers; null: no leader is sure, or the copy that answered is behind it, so ask again.
 * Throws what a request throws, and `StoreRefused`.
 */
export async function provedLast(wire: Wire, last: LastWanted): Promise<readonly LastMessage[] | null> {
  const { stream, wanted, all, timeoutMs } = last;
  const info = await streamInfo(wire, stream, timeoutMs);
  if (!isSure(info)) return null;
  const { messages, last_seq: end } = info.state;
  if (messages === 0) return [];
  const found = await lastOfEach(wire, last, isSure);
  if (found === null) return null;
  if (found.last.length > 0) return found.upTo < end ? null : found.last;
  // A copy that finds nothing does not say how far it has looked: it is asked for something else as well. Not before: it would look through
  // all that stands between the two. The last one may be gone, and to find what stands before it is looked for among all subjects.
  const other =
    (await leaderMessage(wire, stream, { seq: end }, timeoutMs)) ??
    (await leaderMessage(wire, stream, { last_by_subj: all }, timeoutMs));
  const both = await lastOf(wire, stream, other === null ? [wanted] : [wanted, other.subject], timeoutMs);
  if (both.upTo < end) return null;
  return both.last.filter(({ subject }) => subject.startsWith(wanted.slice(0, -1)));
}
