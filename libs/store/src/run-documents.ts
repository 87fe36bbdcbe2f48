/** The collections of the runs repository, and run documents as they are kept. */
import { createHash } from 'node:crypto';
import {
  viewOfStored,
  type RunEvent,
  type RunState,
  type RunView,
  type Sequence,
  type StoredRunState,
} from '@penstock/run';
import { cachesSpec } from './cache-entries.ts';
import { hookCollections } from './hook-documents.ts';
import { logArchiveSpec } from './log-archive-spec.ts';
import { schedulesSpec } from './schedule-documents.ts';
import type { CollectionSpec, DocumentOf, Part } from './port.ts';

export const runsSpec = {
  name: 'runs',
  fields: {
    partition: 'integer',
    tenant: 'string',
    key: 'string',
    pipelineName: 'string',
    /** Milliseconds since 1970. */
    createdAt: 'integer',
    status: 'string',
    /** '' for a run from no repository, and in documents of releases before the field. */
    repository: 'string',
    ref: 'string',
    /** Commit and fingerprint: equal for runs that ought to end alike. '' for a run without a commit, and as above. */
    sameAs: 'string',
    /** The run that it repeats; '' for one that repeats none, and as above. */
    parent: 'string',
    /** Of its tier; 0: none says so, and as above. */
    keepDays: 'integer',
    keepRuns: 'integer',
    open: 'boolean',
    incarnation: 'integer',
    sequence: 'integer',
  },
  /** The view apart from the rest: lists of runs read nothing else. */
  parts: ['view', 'story'],
  indexes: [
    ['tenant'],
    ['tenant', 'pipelineName'],
    // Every choice of filters has an index; where a repository or a ref is asked for without a status, all statuses are.
    ['tenant', 'status'],
    ['tenant', 'pipelineName', 'status'],
    ['tenant', 'repository', 'status'],
    ['tenant', 'ref', 'status'],
    ['tenant', 'repository', 'ref', 'status'],
    ['tenant', 'pipelineName', 'repository', 'status'],
    ['tenant', 'pipelineName', 'ref', 'status'],
    ['tenant', 'pipelineName', 'repository', 'ref', 'status'],
    ['tenant', 'sameAs', 'status'],
    ['tenant', 'parent'],
    ['partition', 'open'],
    ['partition', 'incarnation', 'sequence'],
    ['partition', 'incarnation'],
  ],
  version: ['incarnation', 'sequence'],
} as const satisfies CollectionSpec;

/** One a partition; its id is the partition's number. */
export const checkpointsSpec = {
  name: 'checkpoints',
  fields: { partition: 'integer', incarnation: 'integer', sequence: 'integer', commit: 'integer' },
  parts: [],
  indexes: [],
  version: ['incarnation', 'sequence'],
} as const satisfies CollectionSpec;

/** What a key has used in a month (P23). */
export const countersSpec = {
  name: 'run_counters',
  fields: {
    partition: 'integer',
    tenant: 'string',
    key: 'string',
    month: 'string',
    runs: 'integer',
    stageMs: 'integer',
    active: 'integer',
    /** -1: any number. */
    maxConcurrent: 'integer',
    incarnation: 'integer',
    sequence: 'integer',
  },
  parts: [],
  indexes: [
    ['partition', 'month'],
    ['tenant', 'month'],
  ],
  version: ['incarnation', 'sequence'],
} as const satisfies CollectionSpec;

export const runCollections: readonly CollectionSpec[] = [
  runsSpec,
  checkpointsSpec,
  countersSpec,
  cachesSpec,
  schedulesSpec,
  logArchiveSpec,
  ...hookCollections,
];

/** A run as the projector writes it; all that its actor needs to go on (P6). */
export interface RunDocument {
  readonly partition: number;
  /** Not closed yet in the sense of P6: take-over reads it. */
  readonly open: boolean;
  /** The commit that this document stands for. */
  readonly incarnation: number;
  readonly sequence: Sequence;
  readonly state: StoredRunState | RunState;
  /** All of them, version 1 first. */
  readonly events: readonly RunEvent[];
  /** Of this state; kept beside it, so that lists of runs need not read the state. */
  readonly view: RunView;
}

/** A run whose document is damaged: where it stands is known, and nothing else. */
export interface UnreadableRun extends Pick<RunDocument, 'open' | 'incarnation' | 'sequence'> {
  readonly id: string;
  /** Why. */
  readonly unreadable: Error;
}

/** A run document made ready for writing: what an owner keeps of an ended run that is not projected yet (P6). */
export interface EncodedRun {
  readonly id: string;
  readonly partition: number;
  readonly tenant: string;
  readonly key: string;
  readonly pipelineName: string;
  readonly createdAt: number;
  readonly status: string;
  readonly repository: string;
  readonly ref: string;
  readonly sameAs: string;
  readonly parent: string;
  readonly keepDays: number;
  readonly keepRuns: number;
  readonly open: boolean;
  readonly incarnation: number;
  readonly sequence: Sequence;
  /** JSON of the RunView. */
  readonly view: string;
  /** JSON of `{state, events}`: the run's event stream and what it adds up to. Stores have it under this name. */
  readonly story: string;
}

/** The first so many events of a run as its document has them. */
export interface EncodedEvents {
  readonly count: number;
  readonly text: string;
}

const NO_EVENTS: EncodedEvents = { count: 0, text: '' };

/** Of events, encoded between two yields: less than a millisecond. */
const STEP_CHARACTERS = 128 * 1024;

/** Later changes of the state do not reach what was encoded. Its memory is about two bytes a character, mostly of `story`. */
export function encodeRun(document: RunDocument): EncodedRun {
  const steps = encodeRunInSteps(document);
  for (;;) {
    const { done, value } = steps.next();
    if (done !== true) continue;
    const { encodedEvents: _, ...run } = value;
    return run;
  }
}

/**
 * The same with a rest after each part of the events, of which a run may have many MiB. The state is encoded by the first
 * step, so it may change afterwards; events never do: what is known of them from an `earlier` time is not encoded again.
 */
export function* encodeRunInSteps(
  document: RunDocument,
  earlier: EncodedEvents = NO_EVENTS,
): Generator<undefined, EncodedRun & { readonly encodedEvents: EncodedEvents }> {
  const { partition, open, incarnation, sequence, state, events, view } = document;
  const [created] = events;
  const run: Omit<EncodedRun, 'story'> = {
    id: state.id,
    partition,
    tenant: state.tenant.toWellFormed(),
    key: state.key.toWellFormed(),
    // A pipeline may call itself by half a surrogate pair; the store refuses that, and the projector must not stand still.
    pipelineName: state.pipelineName.toWellFormed(),
    createdAt: state.createdAt,
    status: state.status,
    repository: (state.origin.repository ?? '').toWellFormed(),
    ref: (state.origin.ref ?? '').toWellFormed(),
    sameAs: sameAsOf({ commit: state.origin.commit, fingerprint: state.fingerprint }),
    parent: state.lineage?.parent ?? '',
    keepDays: created?.type === 'run_created' ? (created.retentionDays ?? 0) : 0,
    keepRuns: created?.type === 'run_created' ? (created.retentionRuns ?? 0) : 0,
    open,
    incarnation,
    sequence,
    view: JSON.stringify(view),
  };
  const head = `{"state":${JSON.stringify(state)},"events":[`;
  let texts = earlier.text;
  let step = 0;
  for (let index = earlier.count; index < events.length; index++) {
    const text = JSON.stringify(events[index]);
    texts += index === 0 ? text : `,${text}`;
    step += text.length;
    if (step < STEP_CHARACTERS) continue;
    step = 0;
    yield undefined;
  }
  return { ...run, story: `${head}${texts}]}`, encodedEvents: { count: events.length, text: texts } };
}

/** '': it is like no other run. */
export function sameAsOf({ commit, fingerprint }: Pick<RunView, 'commit' | 'fingerprint'>): string {
  return commit === undefined || fingerprint === undefined ? '' : `${commit.toWellFormed()}/${fingerprint}`;
}

/**
 * Of two runs of one commit and definition: whether one says something about the other. Strangers who share a tenant are told apart by
 * their keys, and a run that gets no secrets may fail for want of them.
 */
export function isAlike(a: Pick<RunView, 'key' | 'trusted'>, b: Pick<RunView, 'key' | 'trusted'>): boolean {
  return a.key === b.key && isTrusted(a) === isTrusted(b);
}

/** Documents of releases before the field are of trusted runs. */
export function isTrusted({ trusted = true }: Pick<RunView, 'trusted'>): boolean {
  return trusted;
}

/** Throws a SyntaxError where the story is damaged. A view that is damaged is made anew from it. */
export function decodeRun(
  row: Pick<DocumentOf<typeof runsSpec>, 'id' | 'partition' | 'open' | 'incarnation' | 'sequence' | 'story' | 'view'>,
): RunDocument {
  const { id, partition, open, incarnation, sequence } = row;
  const story: unknown = JSON.parse(String(row.story));
  if (!isStory(story, id)) throw new SyntaxError('a run has no state or no events');
  return { partition, open, incarnation, sequence, ...story, view: viewOfRow(row, story.state) };
}

function viewOfRow({ id, view }: Pick<DocumentOf<typeof runsSpec>, 'id' | 'view'>, state: StoredRunState): RunView {
  try {
    return decodeView(id, view);
  } catch {
    try {
      return viewOfStored(state);
    } catch (error) {
      throw new SyntaxError('a run has no state', { cause: error });
    }
  }
}

/** Throws a SyntaxError where it is damaged. */
export function decodeView(id: string, text: Part): RunView {
  const view: unknown = JSON.parse(String(text));
  if (!isView(view, id)) throw new SyntaxError('a run has no view');
  return view;
}

function isStory(
  value: unknown,
  id: string,
): value is { readonly state: StoredRunState; readonly events: readonly RunEvent[] } {
  if (!isRecord(value)) return false;
  const { state, events } = value;
  if (!isRecord(state) || state['id'] !== id || !areTexts(state, ['tenant', 'key', 'pipelineName', 'status']))
    return false;
  return areRecords(state['stages'], ['name', 'status']) && areRecords(events, ['type']);
}

function isView(value: unknown, id: string): value is RunView {
  if (!isRecord(value) || value['id'] !== id) return false;
  return (
    areTexts(value, ['tenant', 'key', 'pipelineName', 'status', 'startedAt']) &&
    areRecords(value['stages'], ['name', 'status'])
  );
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function areTexts(record: Readonly<Record<string, unknown>>, names: readonly string[]): boolean {
  return names.every((name) => typeof record[name] === 'string');
}

function areRecords(values: unknown, names: readonly string[]): boolean {
  return Array.isArray(values) && values.every((value: unknown) => isRecord(value) && areTexts(value, names));
}

/** A key may be longer than an id. */
export function counterId(key: string, month: string): string {
  return `${month}-${createHash('sha256').update(key).digest('base64url')}`;
}
