/**
 * Commits: what a partition's log consists of (P1), and their bytes. A commit is JSON; the YAML text of a `run_created`
 * is deflated where that is shorter, and so are the manifests of its extensions. `number` counts a partition's commits without gaps, whatever the broker's sequences.
 */
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import {
  asEpoch,
  asVersion,
  type Epoch,
  type RunCreated,
  type RunDeleted,
  type RunEvent,
  type RunId,
  type ScheduleEvent,
  type Version,
} from '@penstock/run';
import { TaggedError } from '@penstock/errors';

/** The format this build writes and the newest that it can read. 2: ends of logs, `run_stopped`, `stages_skipped`; 3: `run_approved`, runs that wait for it, and gates; 4: `stages_added`, schedules, reruns and what they take over; 5: `run_deleted`. All before it is read too. */
export const COMMIT_FORMAT = 5;
/** Joining stops at so many runs or bytes; a single decision may be larger and always fits one commit (P1). */
export const COMMIT_RUNS_MAX = 256;
export const COMMIT_BYTES_MAX = 512 * 1024;
export const DECISION_BYTES_MAX = 900 * 1024;
/** Below this, deflating costs more than the bytes it saves. */
const DEFLATE_FROM = 1024;

export interface CommitHead {
  readonly id: string;
  readonly kind: 'opened' | 'runs' | 'released';
  readonly partition: number;
  readonly epoch: Epoch;
  readonly number: number;
  readonly owner: string;
  /** A build that reads less than this leaves the partition alone. */
  readonly minReader: number;
  readonly at: number;
  /** The latest time in an id of the partition's runs so far (P7). Absent in commits of earlier builds. */
  readonly idsTo?: number | undefined;
}

export interface RunEntry {
  readonly id: RunId;
  /** The version of the first event. */
  readonly from: Version;
  readonly events: readonly RunEvent[];
}

/** What was decided about a schedule, in order (P28). */
export interface ScheduleEntry {
  readonly id: string;
  readonly events: readonly ScheduleEvent[];
}

/** A run that is deleted (P34). */
export interface DeletedEntry {
  readonly id: RunId;
  readonly tenant: string;
  /** The run that it has repeated. */
  readonly parent?: string | undefined;
  readonly event: RunDeleted;
}

export interface Commit extends CommitHead {
  readonly runs: readonly RunEntry[];
  /** Absent: none. */
  readonly deleted?: readonly DeletedEntry[] | undefined;
  /** Absent: none. */
  readonly schedules?: readonly ScheduleEntry[] | undefined;
}

export class UnreadableCommit extends TaggedError {
  readonly tag = 'UnreadableCommit';
}

export function encodeEvent(event: RunEvent): string {
  if (event.type === 'stages_added') {
    const { text, stages: _stages, ...rest } = event;
    return JSON.stringify({ ...rest, textDeflated: deflated(text) });
  }
  if (event.type !== 'run_created' || (event.extensions === undefined && event.yaml.length < DEFLATE_FROM))
    return JSON.stringify(event);
  const { yaml, extensions, ...rest } = event;
  return JSON.stringify({
    ...rest,
    ...(yaml.length < DEFLATE_FROM ? { yaml } : { yamlDeflated: deflated(yaml) }),
    ...(extensions === undefined ? {} : { extensionsDeflated: deflated(JSON.stringify(extensions)) }),
  });
}

/** Whether the events of one decision fit a commit (P1). Nearly all are known to by a look: only the rest are encoded for it. */
export function fitsCommit(events: readonly RunEvent[]): boolean {
  const atMost = events.reduce((sum, event) => sum + lengthAtMost(event), 0);
  return (
    atMost <= DECISION_BYTES_MAX ||
    events.reduce((sum, event) => sum + Buffer.byteLength(encodeEvent(event)) + 1, 0) <= DECISION_BYTES_MAX
  );
}

/** Bytes in JSON: a UTF-16 unit takes six at most. */
function lengthAtMost(event: RunEvent): number {
  let units = 100;
  if (event.type === 'run_created') return Number.POSITIVE_INFINITY;
  if ('stage' in event) units += event.stage.length;
  if (event.type === 'stages_added') return 6 * units + event.bytes;
  if (event.type === 'stages_queued' || event.type === 'gates_queued' || event.type === 'stages_skipped')
    for (const stage of event.stages) units += stage.length + 1;
  if (event.type === 'gate_decided') units += event.person.length + event.by.length + (event.comment?.length ?? 0);
  if (event.type === 'run_quarantined') units += event.cause.length;
  if (event.type === 'stages_adopted')
    for (const { stage, outputs } of event.adopted) units += stage.length + unitsOf(outputs) + 300;
  if ('outputs' in event) units += unitsOf(event.outputs);
  if ('caches' in event) for (const { key } of event.caches ?? []) units += key.length + 150;
  return units * 6;
}

function unitsOf(outputs: Readonly<Record<string, string>> = {}): number {
  return Object.entries(outputs).reduce((sum, [key, value]) => sum + key.length + value.length + 2, 0);
}

/** `entries` are the runs' events as `encodeEvent` made them, `schedules` those of schedules as JSON, `deleted` entries as JSON. */
export function encodeCommit(
  head: CommitHead,
  entries: Iterable<{ readonly id: RunId; readonly from: Version; readonly events: readonly string[] }>,
  schedules: Iterable<{ readonly id: string; readonly events: readonly string[] }> = [],
  deleted: Iterable<string> = [],
): Uint8Array {
  const runs: string[] = [];
  for (const { id, from, events } of entries) runs.push(`{"id":"${id}","from":${from},"events":[${events.join(',')}]}`);
  const more = Array.from(schedules, ({ id, events }) => `{"id":"${id}","events":[${events.join(',')}]}`);
  const gone = [...deleted];
  const last =
    (more.length === 0 ? '' : `,"schedules":[${more.join(',')}]`) +
    (gone.length === 0 ? '' : `,"deleted":[${gone.join(',')}]`);
  return Buffer.from(`${JSON.stringify(head).slice(0, -1)},"runs":[${runs.join(',')}]${last}}`);
}

/** Throws UnreadableCommit for bytes of a newer format, or that are no commit. */
export function decodeCommit(bytes: Uint8Array): Commit {
  let commit: Commit;
  try {
    commit = JSON.parse(Buffer.from(bytes).toString('utf8')) as Commit;
  } catch (cause) {
    throw new UnreadableCommit('a message of the journal is not JSON', { cause });
  }
  if (!(commit.minReader <= COMMIT_FORMAT)) {
    throw new UnreadableCommit(
      `commit ${commit.number} of partition ${commit.partition} needs a build that reads format ${commit.minReader}; this one reads ${COMMIT_FORMAT}`,
    );
  }
  try {
    asEpoch(commit.epoch);
    for (const { from } of commit.runs) asVersion(from);
  } catch (cause) {
    throw new UnreadableCommit(`commit ${commit.number} of partition ${commit.partition} is damaged`, { cause });
  }
  for (const entry of commit.runs) {
    (entry.events as RunEvent[]).forEach((event, index, events) => {
      events[index] = inflated(event);
    });
  }
  return commit;
}

function inflated(
  event: RunEvent & {
    readonly yamlDeflated?: string;
    readonly extensionsDeflated?: string;
    readonly textDeflated?: string;
  },
): RunEvent {
  if (event.type === 'stages_added' && event.textDeflated !== undefined) {
    const { textDeflated, ...rest } = event;
    return { ...rest, text: inflate(textDeflated), stages: [] };
  }
  if (event.type !== 'run_created' || (event.yamlDeflated === undefined && event.extensionsDeflated === undefined))
    return event;
  const { yamlDeflated, extensionsDeflated, ...rest } = event;
  return {
    ...rest,
    ...(yamlDeflated === undefined ? {} : { yaml: inflate(yamlDeflated) }),
    ...(extensionsDeflated === undefined
      ? {}
      : { extensions: JSON.parse(inflate(extensionsDeflated)) as NonNullable<RunCreated['extensions']> }),
  };
}

/** What a text takes in the journal. */
export function journaledBytes(text: string): number {
  return deflated(text).length;
}

/** Level 3: most of the gain at a third of the time. */
function deflated(text: string): string {
  return deflateRawSync(text, { level: 3 }).toString('base64');
}

function inflate(base64: string): string {
  return inflateRawSync(Buffer.from(base64, 'base64')).toString('utf8');
}
