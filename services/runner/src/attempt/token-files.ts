/** The id tokens of a stage as files that its executor keeps in memory, and replaces while it runs. */
import type { StageProcess, StageSpec } from '@penstock/executor';
import type { TokenPlace } from './stage-id-tokens.ts';

export class TokenFiles implements TokenPlace {
  readonly #process: () => StageProcess | null;
  #tokens: ReadonlyMap<string, string> = new Map();

  /** `process`: null before the stage starts. */
  constructor(process: () => StageProcess | null) {
    this.#process = process;
  }

  /** What the stage starts with. */
  get files(): NonNullable<StageSpec['renewedFiles']> {
    return [...this.#tokens].map(([variable, content]) => ({ variable, content }));
  }

  write(tokens: ReadonlyMap<string, string>): void {
    this.#tokens = tokens;
    for (const [variable, token] of tokens) this.#process()?.replaceFile?.(variable, token);
  }
}
