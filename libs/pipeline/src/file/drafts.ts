/**
 * What has been read and is not expanded yet: the stages of a level, and the extensions that they use, which are made of levels
 * themselves. The types stand together because they lead back to each other; nothing is read or decided here.
 */
import type { Command, Expression, InputDefinition, RetryPolicy, Template } from '../model/definition.ts';
import type { ReportsDefinition } from '../model/kept-files.ts';
import type { ApprovalDefinition } from '../model/approval.ts';
import type { ArtifactsDraft } from './artifacts.ts';
import type { Quarantine } from '../model/quarantine.ts';
import type { CacheDefinition } from '../model/cache.ts';
import type { Ceiling } from '../model/ceiling.ts';
import type { IdTokenUse } from '../model/id-token-use.ts';
import type { SecretUse } from '../model/secret-use.ts';
import type { Span } from '../text/text-position.ts';
import type { ScalarNode } from '../yaml/yaml-tree.ts';
import type { Environment } from './environment.ts';
import type { PlaceDraft } from './place.ts';
import type { Matrix } from './matrix.ts';
import type { ExpressionSite } from './template.ts';

export interface StageDraft {
  readonly name: string;
  readonly nameSpan: Span;
  readonly path: string;
  readonly after: readonly ScalarNode[];
  readonly when: Expression | undefined;
  readonly runsAfterFailure: boolean;
  readonly commands: readonly Command[];
  readonly env: Environment;
  readonly timeoutMs: number | undefined;
  readonly retry: RetryPolicy | undefined;
  readonly allowFailure: boolean;
  readonly workdir: Template | undefined;
  readonly shell: string | undefined;
  readonly workspace: 'shared' | 'fresh' | undefined;
  readonly runsOn: readonly { readonly template: Template; readonly span: Span }[];
  readonly outputs: readonly string[];
  readonly secrets: readonly SecretUse[] | undefined;
  /** Where that stands. */
  readonly secretsSpan: Span | undefined;
  readonly idTokens: readonly IdTokenUse[] | undefined;
  /** Where that stands. */
  readonly idTokensSpan: Span | undefined;
  readonly place: PlaceDraft;
  readonly artifacts: ArtifactsDraft | undefined;
  readonly reports: ReportsDefinition | undefined;
  readonly quarantine: Quarantine | undefined;
  /** Where that stands. */
  readonly quarantineSpan: Span | undefined;
  readonly caches: readonly CacheDefinition<Template>[] | undefined;
  readonly approval: ApprovalDefinition<Template> | undefined;
  /** Where that stands. */
  readonly approvalSpan: Span | undefined;
  readonly generates: Ceiling | undefined;
  /** Where that stands. */
  readonly generatesSpan: Span | undefined;
  readonly use: StageUse | undefined;
  readonly matrix: Matrix | undefined;
  /** The stage has a `matrix`, also where it could not be read. */
  readonly isMatrix: boolean;
  /** Every expression of the stage. */
  readonly sites: readonly ExpressionSite[];
}

export interface StageUse {
  /** Undefined: it is not known here; the problem has been noted, unless unresolved ones are accepted. */
  readonly extension: LoadedExtension | undefined;
  /** A value for every input of the extension, by name. */
  readonly inputs: ReadonlyMap<string, Template>;
}

export interface StageNames {
  /** Expanded stages by full name. */
  readonly byFullName: ReadonlyMap<string, number>;
  /** Drafts by the name in the file. */
  readonly byName: ReadonlyMap<string, number>;
  /** The draft of each expanded stage, and the first expanded stage of each draft with their number. */
  readonly draftOf: readonly number[];
  readonly firstOf: readonly number[];
  readonly countOf: readonly number[];
  readonly fullNames: readonly string[];
}

export interface Graph {
  /** For each draft, the expanded stages that it comes after, each once. */
  readonly after: readonly (readonly number[])[];
  /** Drafts in an order in which each comes after all that it depends on. Undefined where there is a cycle. */
  readonly order: readonly number[] | undefined;
}

export interface Level {
  readonly drafts: readonly StageDraft[];
  readonly names: StageNames;
  readonly graph: Graph;
  /** Of all its stages. */
  readonly env: Environment;
}

export interface OutputDefinition {
  readonly name: string;
  readonly description: string;
}

/** What a manifest says of an extension, for those who list, publish or explain it. */
export interface ExtensionManifest {
  readonly id: string;
  readonly version: string;
  readonly description: string;
  readonly inputs: readonly InputDefinition[];
  readonly outputs: readonly OutputDefinition[];
  readonly form: 'run' | 'stages';
  /** The extensions that its own stages use. */
  readonly uses: readonly string[];
}

/** The manifest with what it is made of: either `commands`, or a `level` of stages. */
export interface ExtensionBody extends ExtensionManifest {
  readonly env: Environment;
  readonly commands: readonly Command[];
  readonly shell: string | undefined;
  /** Of `commands`, where the stage that uses them says nothing itself. */
  readonly place: PlaceDraft;
  readonly level: Level | undefined;
  /** What the outputs of an extension with stages are. */
  readonly values: ReadonlyMap<string, Template>;
}

export interface LoadedExtension {
  readonly id: string;
  readonly version: string;
  readonly hash: string;
  readonly body: ExtensionBody;
  /** Levels of extensions below it, itself included. */
  readonly height: number;
}
