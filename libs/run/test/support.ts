/** Builders for definitions and runs: a test says what matters to it, and nothing else. */
import type { Expression, PipelineDefinition, StageDefinition } from '@penstock/pipeline';
import {
  newRun,
  planOf,
  type Lineage,
  type RunCommand,
  type RunEvent,
  type RunSettings,
  type RunState,
  type StageReason,
  type StagePicture,
} from '@penstock/run';
import { RunActor, type Decided } from '@penstock/run/machine';

export const RUN_ID = '01940000-0000-7abc-8000-000000000001';
export const settings: RunSettings = { queueTimeoutMs: 86_400_000 };
export const always: Expression = { kind: 'call', name: 'always', arguments: [] };
export const failure: Expression = { kind: 'call', name: 'failure', arguments: [] };

export function stage(name: string, more: Partial<StageDefinition> = {}): StageDefinition {
  return {
    name,
    after: [],
    runsAfterFailure: false,
    commands: [{ script: 'true', bindings: {} }],
    env: {},
    timeoutMs: 60_000,
    retry: { max: 0, backoff: 'constant', delayMs: 1_000, on: ['failure'] },
    allowFailure: false,
    workspace: 'shared',
    runsOn: [],
    outputs: [],
    ...more,
  };
}

export function pipeline(...stages: StageDefinition[]): PipelineDefinition {
  return { name: 'ship', schedule: [], stages };
}

/** `count` expansions of one matrix stage. */
export function matrix(
  name: string,
  count: number,
  more: Partial<StageDefinition> & { failFast?: boolean; maxParallel?: number } = {},
): StageDefinition[] {
  const { failFast = true, maxParallel, ...rest } = more;
  return Array.from({ length: count }, (_, index) =>
    stage(`${name} (n=${index})`, {
      matrix: { of: name, values: { n: String(index) }, failFast, maxParallel },
      ...rest,
    }),
  );
}

export function createdEvent(
  more: Partial<Extract<RunEvent, { type: 'run_created' }>> = {},
): Extract<RunEvent, { type: 'run_created' }> {
  return {
    type: 'run_created',
    at: 1_000,
    tenant: 'ada',
    key: 'ada',
    pipelineName: 'ship',
    yaml: 'stages: {}',
    priority: 0,
    origin: { kind: 'api' },
    ...more,
  };
}

/** A run that a test gives commands to, and its events: time goes on by a second with each command. */
export class DrivenRun {
  readonly definition: PipelineDefinition;
  readonly events: RunEvent[];
  readonly run: RunState;
  readonly actor: RunActor;
  readonly #rests: boolean;
  at = 1_000;

  constructor(
    definition: PipelineDefinition,
    options: {
      readonly held?: 'group' | undefined;
      readonly lineage?: Lineage;
      readonly settings?: RunSettings;
      readonly started?: boolean;
      /** After each command. */
      readonly rests?: boolean;
    } = {},
  ) {
    this.definition = definition;
    this.#rests = options.rests === true;
    const created = createdEvent(options.lineage === undefined ? {} : { lineage: options.lineage });
    this.events = [created];
    this.run = newRun(RUN_ID, created, planOf(definition));
    this.actor = new RunActor({ run: this.run, settings: options.settings ?? settings });
    if (options.started !== false) this.tell({ type: 'start', held: options.held });
  }

  tell(command: DistributiveOmit<RunCommand, 'at'> & { readonly at?: number }): Decided | undefined {
    this.at = command.at ?? this.at + 1_000;
    const decided = this.actor.tell({ ...command, at: this.at } as RunCommand);
    this.events.push(...(decided?.events ?? []));
    if (this.#rests) this.actor.rest();
    return decided;
  }

  grant(name: string, runner = 'r1'): Decided | undefined {
    return this.tell({ type: 'grant', stage: name, runner, session: `${runner}-s`, credit: this.events.length });
  }

  succeed(name: string, outputs?: Record<string, string>): Decided | undefined {
    return this.tell({
      type: 'result',
      stage: name,
      attempt: this.stage(name).attempt,
      status: 'success',
      exitCode: 0,
      logBytes: 7,
      outputs,
    });
  }

  fail(name: string, reason: StageReason = 'exit', exitCode = 1): Decided | undefined {
    return this.tell({
      type: 'result',
      stage: name,
      attempt: this.stage(name).attempt,
      status: 'failed',
      reason,
      exitCode,
      logBytes: 7,
    });
  }

  lose(name: string): Decided | undefined {
    return this.tell({ type: 'lose', stage: name, attempt: this.stage(name).attempt, logSequence: 3 });
  }

  stage(name: string): StagePicture {
    const found = this.run.stages.find((candidate) => candidate.name === name);
    if (found === undefined) throw new RangeError(`there is no stage ${name}`);
    return found;
  }

  statuses(): Record<string, string> {
    return Object.fromEntries(this.run.stages.map(({ name, status }) => [name, status]));
  }

  queued(): string[] {
    return this.run.stages.filter(({ status }) => status === 'QUEUED').map(({ name }) => name);
  }
}

export function types(decided: Decided | undefined): string[] {
  return (decided?.events ?? []).map(({ type }) => type);
}

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;
