/**
 * What a pipeline file means, once it has been checked and expanded: plain JSON values, so that a definition can be
 * cached by the hash of its text, compared, and kept in a document. Nothing here refers back to the YAML.
 *
 * Stages stand in file order, each matrix stage replaced by its expansions in place; `after` names expanded stages only.
 */
import type { ApprovalDefinition } from './approval.ts';
import type { ArtifactsDefinition, ReportsDefinition } from './kept-files.ts';
import type { CacheDefinition } from './cache.ts';
import type { Ceiling } from './ceiling.ts';
import type { IdTokenUse } from './id-token-use.ts';
import type { PlaceDefinition } from './place.ts';
import type { Quarantine } from './quarantine.ts';
import type { SecretUse } from './secret-use.ts';

/** A text with `${{ }}` in it: literal parts and expressions, joined in order. A plain text is one literal part. */
export type Template = readonly (string | { readonly expression: Expression })[];

/** The checked syntax tree of one `${{ }}`; evaluated by `evaluate` with the values of a run. */
export type Expression =
  | { readonly kind: 'literal'; readonly value: string | number | boolean | null }
  /** `stages.build.outputs.version` is `['stages', 'build', 'outputs', 'version']`; indexes with quotes are the same. */
  | { readonly kind: 'path'; readonly path: readonly string[] }
  /** A text with expressions in it, where an input of an extension was given one. Its value is always a text. */
  | { readonly kind: 'text'; readonly parts: Template }
  | { readonly kind: 'call'; readonly name: ExpressionFunction; readonly arguments: readonly Expression[] }
  | { readonly kind: 'not'; readonly operand: Expression }
  | {
      readonly kind: 'binary';
      readonly operator: '==' | '!=' | '&&' | '||';
      readonly left: Expression;
      readonly right: Expression;
    };

export type ExpressionFunction = 'success' | 'failure' | 'always' | 'hash';

/**
 * One command of a stage. `script` is shell text in which every `${{ }}` has become a reference to the variable that
 * `bindings` names (quoted for the place it stands in); the value reaches the shell through the environment only.
 */
export interface Command {
  readonly script: string;
  readonly bindings: Readonly<Record<string, Expression>>;
}

export type RetryCause = 'failure' | 'timeout' | 'lost';

export interface RetryPolicy {
  /** Further attempts after the first, 0 to 10. */
  readonly max: number;
  readonly backoff: 'constant' | 'exponential';
  readonly delayMs: number;
  readonly on: readonly RetryCause[];
}

/** Which expansion of a matrix a stage is. */
export interface MatrixCell {
  /** The stage's name in the file; all expansions share it. */
  readonly of: string;
  readonly values: Readonly<Record<string, string>>;
  /** How many expansions may run at a time; absent: no bound. */
  readonly maxParallel?: number | undefined;
  readonly failFast: boolean;
}

export interface StageDefinition {
  /** The full name, `test (node=24, os=linux)` for an expansion. Unique in the pipeline. */
  readonly name: string;
  readonly after: readonly string[];
  /** Absent: `success()`. */
  readonly when?: Expression | undefined;
  /** True where `when` calls `always()` or `failure()`: the stage is looked at also after failed dependencies. */
  readonly runsAfterFailure: boolean;
  readonly commands: readonly Command[];
  /** Top-level and stage environment merged, the stage's winning. */
  readonly env: Readonly<Record<string, Template>>;
  readonly timeoutMs: number;
  readonly retry: RetryPolicy;
  readonly allowFailure: boolean;
  readonly workdir?: Template | undefined;
  /** Absent: `sh`. */
  readonly shell?: string | undefined;
  readonly workspace: 'shared' | 'fresh';
  /** Labels that a runner must have, sorted. */
  readonly runsOn: readonly string[];
  /** Names that the stage may publish; an output of another name is dropped with a warning line. */
  readonly outputs: readonly string[];
  /** Absent: none. */
  readonly secrets?: readonly SecretUse[] | undefined;
  /** Absent: none. */
  readonly idTokens?: readonly IdTokenUse[] | undefined;
  /** What it asks of the place where it runs; absent: nothing. */
  readonly place?: PlaceDefinition<Template> | undefined;
  /** What of its files is kept after it; absent: nothing. */
  readonly artifacts?: ArtifactsDefinition | undefined;
  /** Which of its files say how tests went; absent: none. */
  readonly reports?: ReportsDefinition | undefined;
  /** Absent: none. */
  readonly quarantine?: Quarantine | undefined;
  /** Files that its runs find again; absent: none. */
  readonly caches?: readonly CacheDefinition<Template>[] | undefined;
  /** It may add stages to its run, which name no more than this; absent: it adds none. */
  readonly generates?: Ceiling | undefined;
  readonly matrix?: MatrixCell | undefined;
  /** The stage is a gate: it runs nothing and waits for people. */
  readonly approval?: ApprovalDefinition<Template> | undefined;
  /** The extension that the stage comes from: its package lies where `SERVICE_EXTENSION_PATH` says while the stage runs. */
  readonly extension?: { readonly id: string; readonly version: string; readonly hash: string } | undefined;
}

export interface PushFilter {
  readonly branches?: readonly string[] | undefined;
  readonly branchesIgnore?: readonly string[] | undefined;
  readonly tags?: readonly string[] | undefined;
  readonly tagsIgnore?: readonly string[] | undefined;
  readonly paths?: readonly string[] | undefined;
  readonly pathsIgnore?: readonly string[] | undefined;
}

/** What happened to a pull request; as GitHub names it. */
export type PullRequestType = 'opened' | 'synchronize' | 'reopened' | 'ready_for_review' | 'labeled';

export interface PullRequestFilter {
  /** It would go into one of these. */
  readonly branches?: readonly string[] | undefined;
  readonly paths?: readonly string[] | undefined;
  /** Absent: all but `labeled`. */
  readonly types?: readonly PullRequestType[] | undefined;
  /** False: a new head leaves the runs of older ones alone. */
  readonly cancelSuperseded?: false | undefined;
}

export type InputType = 'string' | 'number' | 'boolean' | 'choice';

/** A value that whoever starts a run, or uses an extension, gives. */
export interface InputDefinition {
  readonly name: string;
  readonly type: InputType;
  /** Of one line; the empty text where there is none. */
  readonly description: string;
  readonly required: boolean;
  /** Absent: the empty text. */
  readonly default?: string | undefined;
  /** Of a `choice`, else empty. */
  readonly options: readonly string[];
  /** The variable that carries the value: `INPUT_NODE_VERSION` for `node-version`. */
  readonly variable: string;
}

/** Where any of them is there, only its events start the pipeline. */
export interface EventFilters {
  readonly push?: PushFilter | undefined;
  readonly pullRequest?: PullRequestFilter | undefined;
}

/** What texts that are added to a run of a pipeline are read with; only where one of its stages adds any. */
export interface Generation {
  /** Of all stages of the file: those that are added have it too. */
  readonly env: Readonly<Record<string, Template>>;
  /** The run's lock with its manifests: nothing else can be used. */
  readonly extensions: readonly ResolvedExtension[];
}

/** At which times of UTC, and with which inputs. */
export interface ScheduleLine {
  /** Five fields with one blank between them, checked. */
  readonly cron: string;
  /** Names and values; absent: none. */
  readonly inputs?: Readonly<Record<string, string>> | undefined;
}

export interface PipelineDefinition {
  readonly name: string;
  readonly description?: string | undefined;
  readonly engine?: string | undefined;
  /** Present where the file says `on`; read and checked, without effect on a triggered or local run. */
  readonly on?: EventFilters | undefined;
  /** Absent: a run takes none. */
  readonly inputs?: readonly InputDefinition[] | undefined;
  /** When a server starts it by itself. */
  readonly schedule: readonly ScheduleLine[];
  readonly concurrency?: { readonly group: Template; readonly cancelInProgress: boolean } | undefined;
  readonly stages: readonly StageDefinition[];
  /** Absent: none of its stages adds others. */
  readonly generation?: Generation | undefined;
}

/** Where a problem stands and how to mend it. Lines and columns count from 1; columns are UTF-16 units. */
export interface Diagnostic {
  readonly line: number;
  readonly column: number;
  /** A dotted path such as `stages.build.after`; empty for the file as a whole. */
  readonly path: string;
  readonly message: string;
  /** The remedy as a phrase (`did you mean 'after'?`), where there is one. */
  readonly suggestion?: string | undefined;
  /** How many UTF-16 units of the line the problem covers; absent for a line that only counts further problems. */
  readonly length?: number | undefined;
}

export type ParseResult =
  | { readonly ok: true; readonly definition: PipelineDefinition }
  | { readonly ok: false; readonly diagnostics: readonly Diagnostic[] };

/** The values that expressions see. Missing paths evaluate to the empty string in templates and to null in comparisons. */
export interface ExpressionScope {
  readonly stages: Readonly<
    Record<string, { readonly status: string; readonly outputs: Readonly<Record<string, string>> }>
  >;
  readonly matrix: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string>>;
  readonly run: Readonly<Record<string, string>>;
  readonly pipeline: Readonly<Record<string, string>>;
  readonly webhook: Readonly<Record<string, string>>;
  /** Of the pipeline; those of an extension are gone once the file has been expanded. */
  readonly inputs: Readonly<Record<string, string>>;
  /** What `success()` and `failure()` answer for the stage in question. */
  readonly success: boolean;
  readonly failure: boolean;
  /** Hears each text that is put together within an expression, before anything is done with it; what it throws ends the evaluation. */
  readonly onText?: ((text: string) => void) | undefined;
  /** What was compared last, by what compares it: whoever evaluates for many stages at once compares long texts once. */
  readonly compared?: Compared | undefined;
}

export type Compared = WeakMap<Expression, { readonly left: string; readonly right: string; readonly same: boolean }>;

/**
 * What one `uses` of a file was resolved to. A file is parsed with the list of them; the list is the run's lock. The same
 * list and the same text give the same definition everywhere.
 */
export interface ResolvedExtension {
  /** As it stands in the file: `build/node@^2.1`. */
  readonly uses: string;
  readonly id: string;
  readonly version: string;
  /** SHA-256 of the package, lower-case hex. */
  readonly hash: string;
  /** The text of the package's `extension.yaml`. */
  readonly manifest: string;
}
