/** What a stage's `cache` asks for: plain JSON values, as in the definition that they stand in. */
/** `Text`: a template in a definition. */
export interface CacheDefinition<Text> {
  /** A part that is a call of `hash` has its value where the files are: on the runner. */
  readonly key: Text;
  /** Patterns over paths in the working folder, or in the stage's home where they begin with `~/`; each also means what is below. */
  readonly paths: readonly string[];
  /** Beginnings of other keys that will do where the key itself is not there; the first that one begins with. */
  readonly restore: readonly Text[];
}
