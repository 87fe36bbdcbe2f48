/** What the stages that a stage adds to its run may name at most. */
export interface Ceiling {
  /** Names of secrets. */
  readonly secrets: readonly string[];
  /** Of id tokens. */
  readonly audiences: readonly string[];
}
