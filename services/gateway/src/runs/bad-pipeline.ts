/** Refuses a pipeline file with all of its problems: as a text, and as a list for programs. */
import { BadUserInput } from '@penstock/errors';
import { diagnosticLine, type Diagnostic } from '@penstock/pipeline';

/** Of a file that was refused by this; undefined: another error. */
export function diagnosticsOf(error: unknown): readonly Diagnostic[] | undefined {
  if (!(error instanceof BadUserInput)) return undefined;
  const { diagnostics } = error.extensions;
  return Array.isArray(diagnostics) ? (diagnostics as readonly Diagnostic[]) : undefined;
}

/** `more` stands beside the diagnostics. */
export function badPipeline(
  diagnostics: readonly Diagnostic[],
  more: Readonly<Record<string, unknown>> = {},
): BadUserInput {
  const count = diagnostics.length;
  const head = count === 1 ? 'The pipeline file has a problem' : `The pipeline file has ${count} problems`;
  return new BadUserInput(`${head}: ${diagnostics.map(diagnosticLine).join('; ')}`, {
    diagnostics: diagnostics.map(({ line, column, path, message, length, suggestion }) => ({
      line,
      column,
      path,
      message,
      ...(length === undefined ? {} : { length }),
      ...(suggestion === undefined ? {} : { suggestion }),
    })),
    ...more,
  });
}
