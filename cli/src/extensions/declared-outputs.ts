/** What an extension gave in the run that tested it: the outputs that its manifest declares, as a stage after it would read them. */
import {
  parsePipeline,
  renderTemplate,
  type ExpressionScope,
  type ResolvedExtension,
  type Template,
} from '@penstock/pipeline';
import type { RunState } from '@penstock/run';

export interface TestedStage {
  /** Of the stage that uses the extension. */
  readonly name: string;
  readonly body: { readonly uses: string; readonly with: Readonly<Record<string, string>> };
  /** The names that the manifest declares. */
  readonly outputs: readonly string[];
}

/**
 * Of an extension made of stages: by name. The stage after it is read and never run: what an output is made of is known to
 * whoever reads such a stage, and to nobody else.
 */
export function declaredOutputs(
  { name, body, outputs }: TestedStage,
  extensions: readonly ResolvedExtension[],
  run: RunState,
): Map<string, string> {
  const variables = outputs.map(
    (output, index) => [`OUTPUT_${index}`, `\${{ stages['${name}'].outputs.${output} }}`] as const,
  );
  const after = { run: 'true', after: name, env: Object.fromEntries(variables) };
  const parsed = parsePipeline(
    JSON.stringify({ pipeline: { name: run.pipelineName }, stages: { [name]: body, [`${name}-reader`]: after } }),
    { extensions },
  );
  const templates = parsed.ok ? (parsed.definition.stages.at(-1)?.env ?? {}) : {};
  const scope = scopeOf(run);
  return new Map(
    outputs.flatMap((output, index): [string, string][] => {
      const template: Template | undefined = templates[`OUTPUT_${index}`];
      return template === undefined ? [] : [[output, renderTemplate(template, scope)]];
    }),
  );
}

function scopeOf({ id, pipelineName, stages }: RunState): ExpressionScope {
  return {
    stages: Object.fromEntries(stages.map(({ name, status, outputs }) => [name, { status, outputs: outputs ?? {} }])),
    matrix: {},
    env: {},
    run: { id },
    pipeline: { name: pipelineName },
    webhook: {},
    inputs: {},
    success: true,
    failure: false,
  };
}
