/** A request to create a run, made into one that nobody knows yet: nothing is counted or kept before it is decided. */
import { createHash } from 'node:crypto';
import type { CreateRequest } from '@penstock/bus';
import { resolveInputs, type PipelineDefinition } from '@penstock/pipeline';
import {
  groupOf,
  isoTime,
  monthEnd,
  monthOf,
  newRun,
  planOf,
  type RunCreated,
  type RunId,
  type RunSettings,
} from '@penstock/run';
import { DECISION_BYTES_MAX, encodeEvent } from '../run/commit.ts';
import { BadPipeline, emptyPipeline, type DefinedPipeline, type DefinitionSource } from '../run/definitions.ts';
import type { KeyCounts } from '../admission/key-counts.ts';
import { LiveRun } from '../run/live-run.ts';
import { rerunOf, type Rerun } from './rerun.ts';
import type { ConcurrencySlots } from '../admission/concurrency-slots.ts';
import { TaggedError } from '@penstock/errors';

/** Stands for "no limit" where a sender needs a number. */
const UNLIMITED = 2_147_483_647;

/** The month's runs of a key are used up (P23). */
export class MonthUsedUp extends TaggedError {
  readonly tag = 'MonthUsedUp';
  readonly retryAfterSecs: number;

  constructor(limit: number, at: number) {
    const endsAt = monthEnd(monthOf(at));
    super(`the limit of ${limit} runs a month is used up; the next month begins at ${isoTime(endsAt)}`);
    this.retryAfterSecs = Math.ceil((endsAt - at) / 1000);
  }
}

/** Of a pull request that has a newer head: it is kept for its sender to see, CANCELLED as it begins (P27). */
export function supersededRequest(request: CreateRequest, definitions: DefinitionSource): CreateRequest {
  const { yaml, extensions, held: _held, ended, ...rest } = request;
  const pipelineName =
    ended?.pipelineName ?? definitions.find(yaml, extensions?.length === 0 ? undefined : extensions).definition.name;
  return { ...rest, yaml: '', ended: { pipelineName, status: 'CANCELLED' } };
}

/** It waits for its approval. */
function isHeld({ held, ended }: CreateRequest): boolean {
  return held !== undefined && ended === undefined;
}

export interface NewRunDependencies {
  readonly now: number;
  readonly settings: RunSettings;
  readonly definitions: DefinitionSource;
  readonly slots: Pick<ConcurrencySlots, 'timeOfNext'>;
  readonly counts: Pick<KeyCounts, 'used'>;
  /** Of a rerun: the run that it repeats, and whether a run of the partition has not settled yet. */
  readonly repeats?: { readonly parent: LiveRun; readonly isLive: (id: RunId) => boolean } | undefined;
}

/** `rerun`: where it comes from, if it repeats another run. */
export interface NewRun {
  readonly run: LiveRun;
  readonly rerun?: Rerun | undefined;
}

/** Throws BadPipeline, MonthUsedUp and RerunRefused. */
export function newRunOf(
  request: CreateRequest,
  { now, settings, definitions, slots, counts, repeats }: NewRunDependencies,
): NewRun {
  const { runId, tenant, key, limits, ended } = request;
  const { definition, yaml, extensions }: DefinedPipeline =
    ended === undefined
      ? definitions.find(request.yaml, request.extensions?.length === 0 ? undefined : request.extensions)
      : { definition: emptyPipeline(ended.pipelineName), yaml: '' };
  const plan = planOf(definition);
  const rerun = repeats === undefined ? undefined : rerunOf(request, repeats.parent, definition, repeats.isLive);
  const { origin, priority = 0, inputs: given } = rerun ?? request;
  const inputs = inputsOf(definition, given);
  const maxConcurrent = limitOf(limits?.maxConcurrent);
  const base: RunCreated = {
    type: 'run_created',
    at: now,
    tenant,
    key,
    pipelineName: definition.name,
    yaml,
    ...(extensions === undefined ? {} : { extensions }),
    priority,
    origin,
    ...(inputs === undefined ? {} : { inputs }),
    ...(yaml === '' ? {} : { fingerprint: fingerprintOf(yaml, extensions, inputs) }),
    ...(maxConcurrent === Number.POSITIVE_INFINITY ? {} : { maxConcurrent }),
    ...(limits?.artifactBytes === undefined ? {} : { artifactBytes: limits.artifactBytes }),
    ...(limits?.retentionDays === undefined ? {} : { retentionDays: limits.retentionDays }),
    ...(limits?.retentionRuns === undefined ? {} : { retentionRuns: limits.retentionRuns }),
    ...(limits?.keySlots === undefined ? {} : { keySlots: Math.max(1, limits.keySlots) }),
    ...(rerun === undefined ? {} : { lineage: rerun.lineage }),
  };
  const group = groupOf(newRun(runId, base, plan), plan);
  const at = slots.timeOfNext(key, group, now);
  const used = counts.used(key, monthOf(at));
  // What the month's limit has turned away is kept for its sender to see, and does not count.
  const counted = ended?.reason !== 'quota' && ended?.status !== 'CANCELLED' && !isHeld(request);
  const limit = limitOf(limits?.pipelineRunLimit);
  if (counted && used >= limit) throw new MonthUsedUp(limit, at);
  const created: RunCreated = {
    ...base,
    at,
    ...(group === undefined ? {} : { group }),
    ...(counted ? { runOfMonth: used + 1 } : {}),
    ...(isHeld(request) ? { held: 'approval' } : {}),
    ...(isHeld(request) && limit !== Number.POSITIVE_INFINITY ? { pipelineRunLimit: limit } : {}),
  };
  checkSize(
    created,
    plan.stages.map((stage) => stage.definition.name),
  );
  return { run: LiveRun.create(runId, definition, created, settings), rerun };
}

/** Of what the run means: two with the same can only end differently for other causes than their definition. */
function fingerprintOf(
  yaml: string,
  extensions: RunCreated['extensions'] = [],
  inputs: RunCreated['inputs'] = {},
): string {
  const lock = extensions.map(({ uses, hash }) => [uses, hash]).toSorted();
  const hash = createHash('sha256')
    .update(JSON.stringify([lock, Object.entries(inputs).toSorted()]))
    .update(yaml);
  // A part of a string would keep all of it.
  return Buffer.from(hash.digest('base64url'), 'latin1').toString('latin1', 0, FINGERPRINT_CHARACTERS);
}

/** 132 bits. */
const FINGERPRINT_CHARACTERS = 22;

function inputsOf(definition: PipelineDefinition, given: CreateRequest['inputs'] = []): RunCreated['inputs'] {
  const resolved = resolveInputs(definition, new Map(given));
  if (!resolved.ok) throw new BadPipeline(resolved.message);
  return definition.inputs === undefined ? undefined : resolved.values;
}

/** Infinity: none. */
export function limitOf(number: number | undefined): number {
  return number === undefined || number >= UNLIMITED ? Number.POSITIVE_INFINITY : number;
}

/** What a first decision holds beside text and names: the events around them, the end of a run whose stages are all skipped. */
const REST_OF_DECISION_BYTES = 4 * 1024;

function checkSize(created: RunCreated, stages: readonly string[]): void {
  if (Buffer.byteLength(encodeEvent(created)) > DECISION_BYTES_MAX / 2)
    throw new BadPipeline('the pipeline is too large to be stored');
  // Watchers get it as it is, in one message.
  if (created.extensions !== undefined && Buffer.byteLength(JSON.stringify(created)) > DECISION_BYTES_MAX)
    throw new BadPipeline('the pipeline and its extensions are too large to be stored');
  // They stand in one commit, with the text: when all of them are queued at once, or skipped.
  const names = stages.reduce((sum, name) => sum + Buffer.byteLength(JSON.stringify(name)) + 1, 0);
  if (names > DECISION_BYTES_MAX / 2 - REST_OF_DECISION_BYTES)
    throw new BadPipeline('the names of the stages are too long to be stored');
}
