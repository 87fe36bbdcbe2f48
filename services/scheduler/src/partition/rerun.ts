/** A request to repeat a run (P30), together with the run that it repeats. Pure; owns nothing. */
import type { CreateRequest, OwnerErrorCode } from '@penstock/bus';
import { TaggedError } from '@penstock/errors';
import type { PipelineDefinition } from '@penstock/pipeline';
import {
  adoptionOf,
  adoptsNothing,
  bitsOf,
  LINEAGE_ACTORS_MAX,
  LINEAGE_LIVE_MAX,
  planOf,
  type GrownPlan,
  type Lineage,
  type RepeatedRun,
  type RunId,
  type TriggerOrigin,
} from '@penstock/run';
import { journaledBytes } from '../run/commit.ts';
import type { LiveRun } from '../run/live-run.ts';

/** The parent cannot be repeated in this way. */
export class RerunRefused extends TaggedError {
  readonly tag = 'RerunRefused';
  readonly code: OwnerErrorCode;

  constructor(code: OwnerErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** What a rerun has from its parent. */
export interface Rerun {
  /** The parent as it is committed. */
  readonly parent: RepeatedRun;
  /** With what is taken over of it. */
  readonly grown: GrownPlan;
  readonly lineage: Lineage;
  /** The parent's, begun by whoever repeats it. Trust does not rise. */
  readonly origin: TriggerOrigin;
  readonly inputs: NonNullable<CreateRequest['inputs']>;
  readonly priority: number;
}

/** `isLive`: whether a run of the partition has not settled yet. Throws RerunRefused. */
export function rerunOf(
  request: CreateRequest,
  parent: LiveRun,
  definition: PipelineDefinition,
  isLive: (id: RunId) => boolean,
): Rerun {
  const state = parent.committedState();
  if (state.tenant !== request.tenant || state.key !== request.key)
    throw new RerunRefused('NOT_FOUND', 'there is no such run');
  // Nothing came of its delivery, which has been decided anew: that is what the new run is.
  const isWithoutFile = state.yaml === '';
  if (!isWithoutFile && state.pipelineName !== definition.name)
    throw new RerunRefused(
      'BAD_USER_INPUT',
      `the file is of the pipeline '${definition.name}', and the run is one of '${state.pipelineName}'`,
    );
  if (parent.restoreError !== undefined)
    throw new RerunRefused('CONFLICT', 'the run cannot be repeated: this version of the server cannot read it');
  const [created] = parent.events;
  if (created?.type === 'run_created' && created.held !== undefined && state.approvedAt === undefined)
    throw new RerunRefused('CONFLICT', 'nobody has approved the run: it is approved first, and goes on then by itself');
  const repeated = { state, events: parent.events.slice(0, parent.committedVersion) };
  const fileBytes = request.yaml === state.yaml ? 0 : journaledBytes(request.yaml);
  const adoption = isWithoutFile
    ? adoptsNothing(planOf(definition))
    : adoptionOf(repeated, planOf(definition), request.rerun ?? {}, fileBytes);
  if (!adoption.ok) throw new RerunRefused(adoption.code, adoption.message);
  const { lineage: before } = state;
  // No schedule has begun this one, whatever its trigger says, and no request but its own.
  const { requestId, traceparent, actor } = request.origin;
  const {
    tick: _tick,
    requestId: _id,
    traceparent: _trace,
    ...origin
  } = isWithoutFile
    ? { ...request.origin, ...(state.origin.trusted === false ? { trusted: false } : {}) }
    : state.origin;
  const beganBy = state.origin.actor;
  const actors = new Set([...(before?.actors ?? []), ...(beganBy === undefined ? [] : [beganBy])]);
  if (actors.size > LINEAGE_ACTORS_MAX)
    throw new RerunRefused('CONFLICT', `more than ${LINEAGE_ACTORS_MAX} people have repeated the run: begin a new one`);
  const live = [state.id, ...(before?.live ?? [])].filter(isLive);
  if (live.length > LINEAGE_LIVE_MAX)
    throw new RerunRefused(
      'CONFLICT',
      `more than ${LINEAGE_LIVE_MAX} runs of which it would be one more repetition go on: wait for their ends, or cancel them`,
    );
  const isEdited = before?.edited === true || (!isWithoutFile && request.yaml !== state.yaml);
  const adopts = bitsOf(adoption.stages);
  const declared = new Set((definition.inputs ?? []).map(({ name }) => name));
  const inherited = Object.entries(state.inputs ?? {}).filter(([name]) => declared.has(name));
  return {
    parent: repeated,
    grown: adoption.grown,
    lineage: {
      parent: state.id,
      version: parent.committedVersion,
      root: before?.root ?? state.id,
      actors: [...actors],
      ...(live.length === 0 ? {} : { live }),
      ...(isEdited ? { edited: true as const } : {}),
      ...(adopts === undefined ? {} : { adopts }),
    },
    origin: {
      ...origin,
      actor,
      ...(requestId === undefined ? {} : { requestId }),
      ...(traceparent === undefined ? {} : { traceparent }),
    },
    inputs: [...new Map([...inherited, ...(request.inputs ?? [])])],
    priority: request.priority ?? state.priority,
  };
}
