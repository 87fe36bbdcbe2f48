/** Stages that add others to their run while it goes on: what they may allow these, and what a text of theirs is read with. */
import type { InputDefinition, ResolvedExtension, Template } from './definition.ts';

/** What the stages that a stage adds may name at most. */
export interface Ceiling {
  /** Names of secrets. */
  readonly secrets: readonly string[];
  /** Of id tokens. */
  readonly audiences: readonly string[];
}

/** What texts that are added to a run of a pipeline are read with; only where one of its stages adds any. */
export interface Generation {
  /** Of all stages of the file: those that are added have it too. */
  readonly env: Readonly<Record<string, Template>>;
  /** The run's lock with its manifests: nothing else can be used. */
  readonly extensions: readonly ResolvedExtension[];
}

/** A text is no pipeline file, but a map of stages that one stage adds to its run. */
export interface AddedBy {
  /** The full name of that stage. */
  readonly stage: string;
  /** How deep the new stages are: 1 where the stage stands in the file. */
  readonly depth: number;
  readonly ceiling: Ceiling;
  readonly env: Generation['env'];
  /** Of the pipeline. */
  readonly inputs: readonly InputDefinition[];
}
