/**
 * Random pipelines: graphs, matrices, retries, conditions, groups, labels. A run's text is the JSON of its definition, so
 * that a world costs no YAML parsing; the parser has its own tests.
 */
import type { Expression, PipelineDefinition, Quarantine, StageDefinition } from '@penstock/pipeline';
import type { RunCreated } from '@penstock/run';
import { BadPipeline, definedRun, type DefinedPipeline, type DefinitionSource } from '@penstock/scheduler/testing';
import type { Random } from '../../support/random.ts';
import { EPOCH_MS, NEXT_MONTH_MS } from './epoch.ts';

export interface PipelineOptions {
  readonly name: string;
  /** Each runner's labels; a stage asks for some that one of them has. */
  readonly labels: readonly (readonly string[])[];
  readonly groups: readonly string[];
  readonly poison: boolean;
  readonly unrestorable: boolean;
  readonly stageMs: number;
  /** So many stages wait for people. */
  readonly gates: number;
  /** So many add stages to their run. */
  readonly generates: number;
  /** So many keep files, and so many leave a cache. */
  readonly keeps: number;
  /** Characters that the text has more. */
  readonly length: number;
}

/** The machine throws when it looks at the retries of a stage with this name: poison. */
export const POISON = 'poison';
/** Who may decide at some gates; others decide where the file names nobody. */
export const APPROVERS: readonly string[] = ['alice', 'bob', 'carol'];
/** From the second look on, this text is no pipeline: a build that cannot read its runs. */
const UNRESTORABLE = 'unrestorable';

export function drawPipeline(random: Random, options: PipelineOptions): string {
  const stages: StageDefinition[] = [];
  const count = 1 + random.int(random.chance(0.2) ? 7 : 4);
  const plain: string[][] = [];
  for (let index = 0; index < count; index++) {
    const name = options.poison && index === 0 ? POISON : `s${index}`;
    const base = drawStage(random, name, plain, options);
    if (name !== POISON && options.gates > 0 && random.chance(options.gates)) {
      stages.push(drawGate(random, base));
      plain.push([name]);
      continue;
    }
    if (!random.chance(0.2)) {
      stages.push(base);
      plain.push([name]);
      continue;
    }
    const matrix = {
      of: name,
      failFast: random.chance(0.5),
      ...(random.chance(0.5) ? { maxParallel: 1 + random.int(2) } : {}),
    };
    const cells = Array.from({ length: 2 + random.int(3) }, (_, cell) => ({
      ...base,
      name: `${name} (n=${cell})`,
      matrix: { ...matrix, values: { n: String(cell) } },
    }));
    stages.push(...cells);
    plain.push(cells.map((cell) => cell.name));
  }
  const definition: PipelineDefinition = {
    name: options.unrestorable ? `${options.name} ${UNRESTORABLE}` : options.name,
    schedule: [],
    ...(random.chance(0.35)
      ? { concurrency: { group: [random.pick(options.groups)], cancelInProgress: random.chance(0.3) } }
      : {}),
    stages: random.chance(0.03) ? [] : stages,
    ...(options.generates > 0 ? { generation: { env: {}, extensions: [] } } : {}),
  };
  return JSON.stringify(definition);
}

function drawStage(
  random: Random,
  name: string,
  before: readonly (readonly string[])[],
  options: PipelineOptions,
): StageDefinition {
  const after = before.filter(() => random.chance(0.4)).flat();
  const when = after.length > 0 && random.chance(0.3) ? drawCondition(random) : undefined;
  const labels = random.pick(options.labels);
  return {
    name,
    after,
    ...(when === undefined ? {} : { when: when.expression }),
    runsAfterFailure: when?.runsAfterFailure ?? false,
    commands: [{ script: 'true', bindings: {} }],
    env: options.length === 0 ? {} : { LARGE: [noise(random, Math.floor(options.length / 4))] },
    timeoutMs: random.chance(0.3) ? options.stageMs * random.between(1, 3) : 60_000,
    retry: {
      max: random.chance(0.5) ? 1 + random.int(2) : 0,
      backoff: random.chance(0.5) ? 'exponential' : 'constant',
      delayMs: random.between(100, 2_000),
      on: (['failure', 'timeout', 'lost'] as const).filter(() => random.chance(0.6)),
    },
    allowFailure: random.chance(0.2),
    ...(random.chance(0.1) ? { quarantine: drawQuarantine(random) } : {}),
    workspace: random.chance(0.3) ? 'fresh' : 'shared',
    runsOn: labels.filter(() => random.chance(0.5)),
    outputs: [],
    ...(options.generates > 0 && random.chance(options.generates) ? { generates: { secrets: [], audiences: [] } } : {}),
    ...(options.keeps > 0 ? drawKept(random, options.keeps) : {}),
  };
}

/** Some of it expires in the world's time. */
function drawKept(random: Random, keeps: number): Pick<StageDefinition, 'artifacts' | 'caches'> {
  const when = random.pick(['success', 'success', 'always', 'failure'] as const);
  const expireMs = random.chance(0.3) ? random.between(1_000, 30_000) : KEPT_LONG_MS;
  return {
    ...(random.chance(keeps)
      ? { artifacts: { paths: ['**'], when, required: random.chance(0.2), expireMs: Math.floor(expireMs) } }
      : {}),
    ...(random.chance(keeps)
      ? { caches: [{ key: [`of-${random.int(3)}`], paths: ['made'], restore: random.chance(0.5) ? [['of-']] : [] }] }
      : {}),
  };
}

const KEPT_LONG_MS = 7 * 24 * 60 * 60 * 1000;

/** Over, over in the middle of the world's time, or not over. */
function drawQuarantine(random: Random): Quarantine {
  const endsAt = random.pick([0, EPOCH_MS + random.int(QUARANTINE_MS_MAX), NEXT_MONTH_MS * 2]);
  return { until: 'a day', endsAt, start: 0, path: '' };
}

const QUARANTINE_MS_MAX = 60_000;

/** The same place in the graph, where nothing runs. */
function drawGate(
  random: Random,
  { name, after, when, runsAfterFailure, timeoutMs, runsOn }: StageDefinition,
): StageDefinition {
  const approvers = random.chance(0.5) ? APPROVERS.slice(0, 1 + random.int(APPROVERS.length)) : undefined;
  return {
    name,
    after,
    ...(when === undefined ? {} : { when }),
    runsAfterFailure,
    commands: [],
    env: {},
    timeoutMs,
    retry: { max: 0, backoff: 'constant', delayMs: 1_000, on: [] },
    allowFailure: false,
    workspace: 'shared',
    runsOn,
    outputs: [],
    approval: {
      ...(approvers === undefined ? {} : { approvers }),
      quorum: 1 + random.int(approvers?.length ?? 2),
      timeoutMs: random.chance(0.3) ? random.between(2_000, 8_000) : random.between(20_000, 90_000),
      preventSelf: false,
    },
  };
}

/** Nothing makes it much shorter. */
function noise(random: Random, length: number): string {
  return Buffer.from(random.bytes(Math.ceil(length * 0.75)))
    .toString('base64')
    .slice(0, length);
}

function drawCondition(random: Random): { readonly expression: Expression; readonly runsAfterFailure: boolean } {
  const call = (name: 'always' | 'failure' | 'success'): Expression => ({ kind: 'call', name, arguments: [] });
  switch (random.int(4)) {
    case 0:
      return { expression: call('always'), runsAfterFailure: true };
    case 1:
      return { expression: call('failure'), runsAfterFailure: true };
    case 2:
      return { expression: call('success'), runsAfterFailure: false };
    default:
      return { expression: { kind: 'literal', value: random.chance(0.5) }, runsAfterFailure: false };
  }
}

/** The definitions of a world, by their texts. */
export class SimDefinitions implements DefinitionSource {
  readonly #known = new Map<string, PipelineDefinition>();
  /** Whether texts marked so can be read no more. */
  newBuild = false;

  find(text: string, _extensions?: unknown): DefinedPipeline {
    const definition = this.#known.get(text) ?? makeDefinition(text);
    this.#known.set(text, definition);
    if (this.newBuild && definition.name.endsWith(UNRESTORABLE))
      throw new BadPipeline('this build does not know the keys of this pipeline');
    return { definition, yaml: text };
  }

  /** What the created run's text means, whatever this build can read. */
  truly(created: RunCreated): PipelineDefinition {
    return definedRun(created, {
      find: (text) => ({ definition: this.#known.get(text) ?? makeDefinition(text), yaml: text }),
    }).definition;
  }
}

function makeDefinition(text: string): PipelineDefinition {
  const definition = JSON.parse(text) as PipelineDefinition;
  for (const stage of definition.stages) {
    if (stage.name === POISON)
      Object.defineProperty(stage, 'retry', {
        get: () => {
          throw new TypeError('poison');
        },
        enumerable: true,
      });
  }
  return definition;
}
