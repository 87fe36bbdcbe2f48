/** What a stage's `artifacts` ask for: plain JSON values, as in the definition that they stand in. */

/** After which endings of the stage its files are kept. */
export type KeptWhen = 'success' | 'failure' | 'always';

/** What a stage's `reports` ask for. */
export interface ReportsDefinition {
  /** Patterns over paths in the working folder, in order: files that say in the XML of JUnit which tests have passed. */
  readonly junit: readonly string[];
}

export interface ArtifactsDefinition {
  /** Patterns over paths in the working folder, in order: the last that fits takes a file in, or out again. None: nothing is kept. */
  readonly paths: readonly string[];
  readonly when: KeptWhen;
  /** Whether a stage that leaves nothing to keep has failed. */
  readonly required: boolean;
  /** For how long they are kept; absent: as the server is set up. */
  readonly expireMs?: number | undefined;
  /** Stages whose kept files it finds where its folder is new; absent: as its `workspace` has it. */
  readonly from?: readonly string[] | undefined;
}
