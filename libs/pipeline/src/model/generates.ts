/** A text that a stage adds to its run while it goes on. */
import type { Ceiling } from './ceiling.ts';
import type { Generation, InputDefinition } from './definition.ts';

/** A text is no pipeline file, but a map of stages that one stage adds to its run. */
export interface AddedBy {
  /** The full name of that stage. */
  readonly stage: string;
  /** How deep the new stages are: 1 where the stage stands in the file. */
  readonly depth: number;
  readonly ceiling: Ceiling;
  readonly env: Generation['env'];
  /** Full names under that of the stage which the run has already; absent: none. */
  readonly taken?: readonly string[] | undefined;
  /** Of the pipeline. */
  readonly inputs: readonly InputDefinition[];
}
