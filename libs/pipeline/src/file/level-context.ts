/** What the stages of a level inherit: from the pipeline nothing, from the stage that uses an extension its settings. */
import type { LoadedExtension } from './drafts.ts';
import type { Expression, MatrixCell, RetryPolicy, Template } from '../model/definition.ts';
import type { Quarantine } from '../model/quarantine.ts';
import type { IdTokenUse } from '../model/id-token-use.ts';
import type { SecretUse } from '../model/secret-use.ts';
import type { PlaceDefinition } from '../model/place.ts';
import type { Environment } from './environment.ts';
import type { Site } from './expansion-budget.ts';

/** What a level of stages is given from around it. */
export interface LevelContext {
  /** Undefined for the pipeline itself. */
  readonly extension: LoadedExtension | undefined;
  /** Before the names of the stages, `build/`, and before those that the expansions of a matrix share. */
  readonly prefix: string;
  readonly family: string;
  readonly inputs: ReadonlyMap<string, Expression>;
  /** Under the stages' own variables, over them, and those that carry the inputs. */
  readonly envBelow: Environment;
  readonly envAbove: Environment;
  readonly variables: Environment;
  /** For the stages of the level that come after no other of it. */
  readonly after: readonly string[];
  readonly when: Expression | undefined;
  readonly runsAfterFailure: boolean;
  /** What the using stage says, for those that say nothing themselves. */
  readonly timeoutMs: number | undefined;
  readonly retry: RetryPolicy | undefined;
  readonly workspace: 'shared' | 'fresh' | undefined;
  readonly workdir: Template | undefined;
  readonly runsOn: readonly string[];
  readonly place: PlaceDefinition<Template> | undefined;
  readonly secrets: readonly SecretUse[] | undefined;
  readonly idTokens: readonly IdTokenUse[] | undefined;
  readonly allowFailure: boolean;
  readonly quarantine: Quarantine | undefined;
  readonly matrix: MatrixCell | undefined;
  /** Where problems are shown: the stage of the file that all this comes from. */
  readonly site: Site | undefined;
}

/** The context of the pipeline itself. */
export const ROOT_CONTEXT: LevelContext = {
  extension: undefined,
  prefix: '',
  family: '',
  inputs: new Map(),
  envBelow: new Map(),
  envAbove: new Map(),
  variables: new Map(),
  after: [],
  when: undefined,
  runsAfterFailure: false,
  timeoutMs: undefined,
  retry: undefined,
  workspace: undefined,
  workdir: undefined,
  runsOn: [],
  place: undefined,
  secrets: undefined,
  idTokens: undefined,
  allowFailure: false,
  quarantine: undefined,
  matrix: undefined,
  site: undefined,
};
