/**
 * The last message of each of any number of subjects. The broker answers for 1,024 of them at once, and refuses a wildcard that covers more:
 * then the stream's leader names them, and they are asked for by name, so many at a time. Only their sequences are kept: a message may
 * have 64 KiB.
 */
import { StoreRefused } from '../contract/errors.ts';
import type { Wire } from '../wire/wire.ts';
import { batchUpTo, StoreCode } from './stored.ts';
import { type StreamInfo, streamInfo } from './stream-info.ts';

export interface LastMessage {
  readonly subject: string;
  readonly sequence: number;
}

export interface LastOfEach {
  readonly last: readonly LastMessage[];
  /** All that answered had looked as far as this; 0: one of them found nothing, and did not say. */
  readonly upTo: number;
}

/** What the broker answers for at most. */
const SUBJECTS_MAX = 1_024;

interface Wanted {
  readonly stream: string;
  readonly wanted: string;
  /** Subjects whose last message is no later may be left out; default none. */
  readonly after?: number | undefined;
  readonly timeoutMs: number;
}

/** From any copy, which may be behind. Null: `counts` does not take the answer of who names the subjects. */
export async function lastOfEach(
  wire: Wire,
  { stream, wanted, after, timeoutMs }: Wanted,
  counts: (info: StreamInfo) => boolean = () => true,
): Promise<LastOfEach | null> {
  try {
    return await lastOf(wire, stream, [wanted], timeoutMs, after);
  } catch (error) {
    if (!(error instanceof StoreRefused && error.code === StoreCode.tooManyResults)) throw error;
  }
  const named = await namedSubjects(wire, { stream, wanted, timeoutMs }, counts);
  if (named === null) return null;
  const last: LastMessage[] = [];
  let upTo = Infinity;
  for (let from = 0; from < named.length; from += SUBJECTS_MAX) {
    const some = await lastOf(wire, stream, named.slice(from, from + SUBJECTS_MAX), timeoutMs, after);
    for (const one of some.last) last.push(one);
    upTo = Math.min(upTo, some.upTo);
  }
  return { last, upTo: named.length > 0 ? upTo : 0 };
}

/** Of 1,024 at most, or a wildcard. */
export async function lastOf(
  wire: Wire,
  stream: string,
  subjects: readonly string[],
  timeoutMs: number,
  after?: number,
): Promise<LastOfEach> {
  const request = {
    multi_last: subjects,
    batch: SUBJECTS_MAX,
    ...(after === undefined || after <= 0 ? {} : { seq: after + 1 }),
  };
  const { messages, upTo } = await batchUpTo(wire, stream, request, timeoutMs);
  return { last: messages.map(({ subject, sequence }) => ({ subject, sequence })), upTo };
}

async function namedSubjects(
  wire: Wire,
  { stream, wanted, timeoutMs }: Wanted,
  counts: (info: StreamInfo) => boolean,
): Promise<readonly string[] | null> {
  const named = new Set<string>();
  for (let offset = 0; ;) {
    const info = await streamInfo(wire, stream, timeoutMs, { subjects_filter: wanted, offset });
    if (!counts(info)) return null;
    const some = Object.keys(info.state.subjects ?? {});
    for (const subject of some) named.add(subject);
    offset += some.length;
    if (some.length === 0 || offset >= (info.total ?? 0)) return [...named];
  }
}
