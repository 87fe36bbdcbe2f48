/** The pipeline file that is being written, and its text. */
import { stringify } from 'yaml';
import { UnreadableSource } from './source.ts';

interface DraftCache {
  key: string;
  paths: string[];
  restore: string[];
}

interface DraftService {
  image: string;
  env: Record<string, string>;
}

export interface DraftMatrix {
  axes: Record<string, string[]>;
  include: Record<string, string>[];
  exclude: Record<string, string>[];
  maxParallel?: string;
  failFast?: boolean;
}

export interface DraftStage {
  name: string;
  run: string[];
  after: string[];
  when?: string | undefined;
  env: Record<string, string>;
  /** Variables to the names of secrets. */
  secrets: Record<string, string>;
  image?: string | undefined;
  entrypoint?: string[] | undefined;
  services: Record<string, DraftService>;
  timeout?: string | undefined;
  retry?: string | undefined;
  /** After which ends; where there are none, as the language has it. */
  retryOn: string[];
  allowFailure: boolean;
  workdir?: string | undefined;
  shell?: string | undefined;
  fresh: boolean;
  runsOn: string[];
  outputs: string[];
  artifacts: { paths: string[]; when?: string; expire?: string; required?: boolean; from: string[] };
  reports: string[];
  caches: DraftCache[];
  idTokens: { audience: string; variable: string }[];
  matrix?: DraftMatrix | undefined;
  /** The stage is a gate. */
  approval?: { message?: string } | undefined;
}

export interface DraftPushFilter {
  branches?: string[];
  'branches-ignore'?: string[];
  tags?: string[];
  'tags-ignore'?: string[];
  paths?: string[];
  'paths-ignore'?: string[];
}

export interface DraftInput {
  type?: string;
  description?: string;
  required?: boolean;
  default?: string;
  options?: string[];
}

export interface Draft {
  name: string;
  description?: string | undefined;
  push?: DraftPushFilter | true | undefined;
  pullRequest?: { branches?: string[]; paths?: string[]; types?: string[] } | true | undefined;
  /** `on` stands in the file, also where it names nothing that happens here. */
  hasOn: boolean;
  schedules: string[];
  inputs: Record<string, DraftInput>;
  env: Record<string, string>;
  concurrency?: { group: string; cancel: boolean } | undefined;
  stages: DraftStage[];
}

/** Of a pipeline; of a stage. */
const NAME_MAX = 200;
const STAGE_NAME_MAX = 100;

export function newDraft(name: string): Draft {
  return { name, hasOn: false, schedules: [], inputs: {}, env: {}, stages: [] };
}

export function newStage(name: string): DraftStage {
  return {
    name: stageName(name),
    run: [],
    after: [],
    env: {},
    secrets: {},
    services: {},
    retryOn: [],
    allowFailure: false,
    fresh: false,
    runsOn: [],
    outputs: [],
    artifacts: { paths: [], from: [] },
    reports: [],
    caches: [],
    idTokens: [],
  };
}

/** As a stage may be called. */
export function stageName(text: string): string {
  const name = text
    .replaceAll(/[\p{C}\s]+/gu, ' ')
    .replaceAll('${{', '{')
    .trim()
    .slice(0, STAGE_NAME_MAX)
    .trim();
  return name === '' ? 'stage' : name;
}

/** Throws `UnreadableSource` where there are more than a pipeline file of ours may have. */
export function assertFewStages(count: number): void {
  if (count > STAGES_MAX) throw new UnreadableSource(`it makes more than ${STAGES_MAX} stages`);
}

const STAGES_MAX = 2_000;

/** Throws `UnreadableSource` before a text is made of what is a few times as large as a file of ours may be: what all stages share is in each. */
export function assertSmall(draft: Draft): void {
  let left = SIZE_MAX;
  const count = (value: unknown): void => {
    left -= typeof value === 'string' ? value.length + 1 : 1;
    if (left < 0) throw new UnreadableSource('what comes of it is too large for a pipeline file');
    if (typeof value !== 'object' || value === null) return;
    for (const [key, each] of Object.entries(value)) {
      left -= key.length;
      count(each);
    }
  };
  count(fileOf(draft));
}

const SIZE_MAX = 4 * 1024 * 1024;

/** The name, with a number where another stage is called so. */
export function nameApart(name: string, taken: ReadonlySet<string>): string {
  let free = name;
  for (let number = 2; taken.has(free); number++) free = `${name} ${number}`;
  return free;
}

/** The whole file. */
export function draftText(draft: Draft, heading: readonly string[]): string {
  const body = stringify(fileOf(draft), {
    lineWidth: 0,
    defaultStringType: 'PLAIN',
    defaultKeyType: 'PLAIN',
    aliasDuplicateObjects: false,
  });
  return `${heading.map((line) => `# ${line}\n`).join('')}${body}`;
}

function fileOf(draft: Draft): Record<string, unknown> {
  const { concurrency } = draft;
  return withoutEmpty({
    pipeline: withoutEmpty({
      name: draft.name.replaceAll('${{', '{').slice(0, NAME_MAX) || 'pipeline',
      description: draft.description,
    }),
    on: draft.hasOn ? triggersOf(draft) : undefined,
    schedule: one(draft.schedules),
    inputs: draft.inputs,
    env: draft.env,
    concurrency:
      concurrency === undefined
        ? undefined
        : { group: concurrency.group, ...(concurrency.cancel ? { cancel_in_progress: true } : {}) },
    stages: Object.fromEntries(draft.stages.map((stage) => [stage.name, stageOf(stage)])),
  });
}

function triggersOf({ push, pullRequest }: Draft): Record<string, unknown> {
  return {
    ...(push === undefined ? {} : { push: push === true ? {} : push }),
    ...(pullRequest === undefined ? {} : { pull_request: pullRequest === true ? {} : pullRequest }),
  };
}

function stageOf(stage: DraftStage): Record<string, unknown> {
  const { approval, artifacts, matrix } = stage;
  const common = { after: one(stage.after), when: stage.when };
  if (approval !== undefined) return withoutEmpty({ ...common, approval: { ...approval } }, ['approval']);
  const hasMore =
    artifacts.when !== undefined ||
    artifacts.expire !== undefined ||
    artifacts.required !== undefined ||
    artifacts.from.length > 0;
  return withoutEmpty({
    ...common,
    image: imageOf(stage),
    services: Object.fromEntries(
      Object.entries(stage.services).map(([name, { image, env }]) => [name, withoutEmpty({ image, env })]),
    ),
    runs_on: one(stage.runsOn),
    matrix: matrix === undefined ? undefined : matrixOf(matrix),
    env: stage.env,
    secrets: secretsOf(stage.secrets),
    id_token: one(stage.idTokens),
    timeout: stage.timeout,
    retry: retryOf(stage),
    allow_failure: stage.allowFailure ? true : undefined,
    workdir: stage.workdir,
    shell: stage.shell,
    workspace: stage.fresh ? 'fresh' : undefined,
    cache: one(stage.caches.map(({ key, paths, restore }) => withoutEmpty({ key, paths, restore: one(restore) }))),
    run: one(stage.run),
    outputs: stage.outputs,
    artifacts: hasMore
      ? withoutEmpty({
          paths: artifacts.paths,
          when: artifacts.when,
          expire: artifacts.expire,
          required: artifacts.required,
          from: one(artifacts.from),
        })
      : artifacts.paths,
    reports: stage.reports.length === 0 ? undefined : { junit: stage.reports },
  });
}

function retryOf({ retry, retryOn }: DraftStage): unknown {
  if (retry === undefined) return undefined;
  return retryOn.length === 0 || Number(retry) === 0 ? Number(retry) : { max: Number(retry), on: one(retryOn) };
}

function imageOf({ image, entrypoint }: DraftStage): unknown {
  if (image === undefined) return undefined;
  return entrypoint === undefined ? image : { name: image, entrypoint };
}

/** Where every variable is called as its secret, their names are enough. */
function secretsOf(secrets: DraftStage['secrets']): unknown {
  const entries = Object.entries(secrets);
  return entries.every(([variable, secret]) => variable === secret) ? entries.map(([variable]) => variable) : secrets;
}

function matrixOf({ axes, include, exclude, maxParallel, failFast }: DraftMatrix): Record<string, unknown> {
  return withoutEmpty({
    ...axes,
    include,
    exclude,
    max_parallel: maxParallel === undefined ? undefined : Number(maxParallel),
    fail_fast: failFast,
  });
}

function one<T>(values: readonly T[]): T | readonly T[] {
  const [first] = values;
  return values.length === 1 && first !== undefined ? first : values;
}

/** Without keys that say nothing. */
function withoutEmpty(record: Record<string, unknown>, kept: readonly string[] = []): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(record).filter(
      ([key, value]) =>
        kept.includes(key) ||
        (value !== undefined &&
          !(Array.isArray(value) && value.length === 0) &&
          !(typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length === 0)),
    ),
  );
}
