/** The labels that a runner must have for a stage, once the values of its matrix are known. */
import type { ExpressionScope, Template } from '../model/definition.ts';
import { renderTemplate } from '../expressions/evaluate.ts';
import { PIPELINE_LIMITS } from '../model/limits.ts';
import { quoted } from '../text/printable.ts';
import type { Problems } from '../text/problems.ts';
import type { Span } from '../text/text-position.ts';

/** Sorted, each once. `place` is where problems are shown; absent: where the label stands. */
export function labelsOf(
  labels: readonly { readonly template: Template; readonly span: Span }[],
  matrix: Readonly<Record<string, string>>,
  path: string,
  problems: Problems,
  place?: Span,
): string[] {
  if (labels.length === 0) return [];
  const scope: ExpressionScope = {
    stages: {},
    matrix,
    env: {},
    run: {},
    pipeline: {},
    webhook: {},
    inputs: {},
    success: true,
    failure: false,
  };
  const found = new Set<string>();
  for (const { template, span } of labels) {
    const label = renderTemplate(template, scope);
    if (label.length > PIPELINE_LIMITS.labelLengthMax || !/^[A-Za-z0-9_][A-Za-z0-9_.:/=-]*$/.test(label)) {
      problems.add(
        place ?? span,
        path,
        `${quoted(label)} cannot be a label: 1 to ${PIPELINE_LIMITS.labelLengthMax} letters, digits, '_', '.', ':', '/', '=' and '-'`,
      );
    }
    found.add(label);
  }
  return [...found].toSorted();
}
