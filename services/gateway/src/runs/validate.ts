/** `validatePipeline`: what a trigger would say of a file, without a run. */
import { BadUserInput } from '@penstock/errors';
import type { LockEntry } from '@penstock/extension';
import { requireReader, type Caller } from '@penstock/identity';
import { parsePipelineOffThread } from '@penstock/parse-pool';
import { warningsOf, type Diagnostic, type PipelineDefinition } from '@penstock/pipeline';
import { planOf } from '@penstock/run';
import { diagnosticsOf } from './bad-pipeline.ts';
import type { UsesResolver } from './extensions.ts';
import { readingTurn } from './reading-turn.ts';

export interface ValidateArguments {
  readonly yaml: string | null | undefined;
  readonly lock?: readonly LockEntry[] | null | undefined;
}

export interface Validation {
  readonly valid: boolean;
  /** Of a valid file: what is to be looked at, and holds nothing up. */
  readonly diagnostics: readonly Pick<Diagnostic, 'line' | 'column' | 'message' | 'suggestion'>[];
  readonly stages: readonly PlannedStage[];
}

interface PlannedStage {
  readonly name: string;
  readonly after: readonly string[] | null;
}

/** As a trigger waits for its file. */
const PARSE_MS_MAX = 5_000;
/** Two matrices of one file may mean millions, and everybody waits for whoever counts them. */
const EDGES_MAX = 50_000;
/** Of callers without a tenant of their own. */
const ANONYMOUS = 'anonymous';

/** Throws `Unavailable` where the file uses extensions and the registry does not answer. */
export async function validatePipeline(
  caller: Caller,
  { yaml, lock }: ValidateArguments,
  uses: UsesResolver,
  now: () => number,
): Promise<Validation> {
  requireReader(caller);
  if (yaml === null || yaml === undefined)
    throw new BadUserInput("The argument 'yaml' is missing: it holds the text of the pipeline file.");
  try {
    const extensions = await uses.resolve(caller, yaml, lock ?? undefined);
    const key = readingTurn(caller.writeTenant ?? ANONYMOUS, yaml);
    const parsed = await parsePipelineOffThread(
      yaml,
      { key, ...(extensions.length === 0 ? {} : { extensions }) },
      PARSE_MS_MAX,
    );
    return parsed.ok
      ? {
          valid: true,
          diagnostics: warningsOf(yaml, parsed.definition, now()),
          stages: plannedStages(parsed.definition),
        }
      : { valid: false, diagnostics: parsed.diagnostics, stages: [] };
  } catch (error) {
    const diagnostics = diagnosticsOf(error);
    if (diagnostics === undefined) throw error;
    return { valid: false, diagnostics, stages: [] };
  }
}

function plannedStages(definition: PipelineDefinition): PlannedStage[] {
  const edges = definition.stages.reduce((count, { after }) => count + after.length, 0);
  if (edges > EDGES_MAX) return definition.stages.map(({ name }) => ({ name, after: null }));
  return planOf(definition).stages.map(({ definition: { name }, after }) => ({ name, after: after ?? null }));
}
