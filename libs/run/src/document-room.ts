/**
 * How large a run's document may become, decided before it is: the store refuses one of more than 32 MiB. A document is the
 * run's events, and its state and view, which have each stage once more and each output too.
 *
 *  ROOM-1 The state counts what its events take; a replay of the same events counts the same.
 *  ROOM-2 An attempt beyond the first is decided only where all stages can still end afterwards, each by one more attempt.
 *     So a run that has no room left ends by itself, and its document has at most RUN_DOCUMENT_BYTES_MAX and its text.
 */
import { PIPELINE_LIMITS } from '@penstock/pipeline';
import type { RunEvent } from './events.ts';
import type { Plan } from './plan.ts';
import type { RunState } from './state.ts';

/** What is left up to the store's 32 MiB holds the run's text twice, its lock, and how it ended. */
export const RUN_DOCUMENT_BYTES_MAX = 28 * 1024 * 1024;

/** In events, state and view. */
const OUTPUT_COPIES = 3;
/** What was said at a gate, in events, state and view. */
const APPROVAL_COPIES = 3;
/** The message of a gate in the view; each of its characters may take six bytes. */
const GATE_BYTES = 12_500;
/** An event of one stage without its strings, all fields there. */
const EVENT_BYTES = 200;
/** What was kept of a stage's files, in its event, the state and the view. */
const ARTIFACTS_BYTES = 600;
/** How its tests went, in the same three. */
const REPORT_BYTES = 900;
/** A saved cache in its event without its key; what a stage reserves for one that it names, its key at its longest in three bytes a character. */
const CACHE_BYTES = 120;
const CACHE_BYTES_MAX = CACHE_BYTES + 3 * PIPELINE_LIMITS.cacheKeyLengthMax;
/** An event that names many stages, without them. */
const LIST_EVENT_BYTES = 80;
/** Without names, a stage in the state and in the view, and the events of its last attempt. */
const STAGE_BYTES = 2_400;
/** Five events of the last attempt, the state and the view. */
const STAGE_NAMES = 7;

/** At least what an event adds to the document. The first is not counted: a commit holds it, so it has less than 1 MiB. */
export function eventBytes(plan: Plan, event: RunEvent): number {
  if (event.type === 'stages_queued' || event.type === 'gates_queued' || event.type === 'stages_skipped')
    return event.stages.reduce((sum, name) => sum + nameBytes(plan, name), LIST_EVENT_BYTES);
  if (event.type === 'stages_adopted')
    return event.adopted.reduce(
      (sum, { stage, outputs, artifacts }) =>
        sum + nameBytes(plan, stage) + outputsBytes(outputs) + (artifacts === undefined ? 0 : ARTIFACTS_BYTES),
      LIST_EVENT_BYTES,
    );
  if (event.type === 'gate_decided')
    return (
      EVENT_BYTES + nameBytes(plan, event.stage) + APPROVAL_COPIES * textBytes([event.person, event.by, event.comment])
    );
  if (event.type === 'stages_added') return EVENT_BYTES + nameBytes(plan, event.stage) + textBytes(event.text);
  if ('cause' in event) return EVENT_BYTES + textBytes(event.cause);
  if ('by' in event) return EVENT_BYTES + textBytes(event.by);
  if ('runner' in event)
    return EVENT_BYTES + grantedBytes(event) + ('stage' in event ? nameBytes(plan, event.stage) : 0);
  if (!('stage' in event)) return EVENT_BYTES;
  return (
    EVENT_BYTES +
    nameBytes(plan, event.stage) +
    ('outputs' in event ? outputsBytes(event.outputs) : 0) +
    keptBytes(event) +
    cachesBytes(event)
  );
}

/** Whether outputs that are still to come, and an end of all stages, fit the document. */
export function hasRoom(run: RunState, plan: Plan, outputs?: Readonly<Record<string, string>>): boolean {
  return run.eventBytes + outputsBytes(outputs) + stagesBytes(plan) <= RUN_DOCUMENT_BYTES_MAX;
}

interface NameSizes {
  readonly names: ReadonlyMap<string, number>;
  /** State and view of all stages, and their last attempts. */
  readonly stages: number;
}

const sizes = new WeakMap<Plan, NameSizes>();

function nameBytes(plan: Plan, name: string): number {
  return sizesOf(plan).names.get(name) ?? textBytes(name);
}

function stagesBytes(plan: Plan): number {
  return sizesOf(plan).stages;
}

function sizesOf(plan: Plan): NameSizes {
  let known = sizes.get(plan);
  if (known === undefined) sizes.set(plan, (known = measured(plan)));
  return known;
}

function measured({ stages }: Plan): NameSizes {
  const names = new Map<string, number>();
  let sum = 0;
  for (const { definition, after = [], depth } of stages) {
    const bytes = textBytes(definition.name);
    names.set(definition.name, bytes);
    sum +=
      (definition.artifacts === undefined ? 0 : ARTIFACTS_BYTES) +
      (definition.reports === undefined ? 0 : REPORT_BYTES) +
      (definition.caches?.length ?? 0) * CACHE_BYTES_MAX +
      (definition.approval === undefined ? 0 : GATE_BYTES + textBytes(definition.approval.approvers ?? [])) +
      STAGE_BYTES +
      // One that was added is named by the event that has added it too.
      (depth === 0 ? STAGE_NAMES : STAGE_NAMES + 1) * bytes +
      2 * textBytes(after);
  }
  return { names, stages: sum };
}

function keptBytes(event: RunEvent): number {
  if (event.type !== 'stage_completed') return 0;
  return (event.artifacts === undefined ? 0 : ARTIFACTS_BYTES) + (event.report === undefined ? 0 : REPORT_BYTES);
}

function cachesBytes(event: RunEvent): number {
  if (!('caches' in event)) return 0;
  return (event.caches ?? []).reduce((sum, { key }) => sum + CACHE_BYTES + textBytes(key), 0);
}

function grantedBytes(event: Extract<RunEvent, { readonly runner: string }>): number {
  if (event.type === 'stage_started') return event.runner.length + event.session.length;
  return event.runner.length + textBytes(event.labelSets ?? []);
}

function outputsBytes(outputs: Readonly<Record<string, string>> | undefined): number {
  if (outputs === undefined) return 0;
  return OUTPUT_COPIES * (textBytes(outputs) + Object.keys(outputs).length * '{"key":,"value":}'.length);
}

/** As JSON in UTF-8, with a comma. */
function textBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value)) + 1;
}
