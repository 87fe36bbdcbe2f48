import { diagnosticLine, formatDiagnostics, parsePipeline, warningsOf, type Diagnostic } from '@penstock/pipeline';
import type { Command, CommandContext, ParsedArguments } from '../command-line/command.ts';
import { EXIT } from '../process/errors.ts';
import { COLOR_OPTIONS, colorChoice } from '../command-line/color-options.ts';
import { printableText } from '../output/printable-text.ts';
import { wantsColor } from '../output/terminal.ts';
import { readPipelineFile } from '../command-line/pipeline-file.ts';
import { knownExtensions } from '../extensions/known-extensions.ts';

export const validateCommand: Command = {
  spec: {
    name: 'validate',
    usage: '[options] [file]',
    about:
      'Checks a pipeline file and points at every problem with its line, its column and what may have been meant. Nothing runs and no server is asked; ' +
      'a file that passes here is a file that a server of this version takes, as far as its extensions are known here (those that are locked and were fetched).',
    options: {
      json: {
        type: 'boolean',
        text: 'One JSON object: {"ok", "file", "pipeline", "stages", "diagnostics": [{"line", "column", "path", "message", "suggestion"}]}.',
      },
      ...COLOR_OPTIONS,
    },
    positionals: { min: 0, max: 1, missing: '' },
    examples: [
      ['penstock validate', 'the pipeline file of this folder'],
      ['penstock validate ci/release.yaml', 'another file'],
      ['git show main:.pipeline.yaml | penstock validate -', 'from standard input'],
    ],
    exitCodes: [
      [EXIT.success, 'the file is good'],
      [EXIT.failure, 'it has problems'],
      [EXIT.usage, 'there is no such file, or wrong usage'],
    ],
  },
  run: validate,
};

async function validate(args: ParsedArguments, { cwd, env, terminal }: CommandContext): Promise<number> {
  const file = await readPipelineFile(args.positionals[0], cwd);
  const extensions = await knownExtensions(file, args.positionals[0], env, cwd);
  const result = parsePipeline(file.text, { extensions: extensions.known, unresolved: 'accept' });
  if (args.flag('json')) {
    const answer = result.ok
      ? {
          ok: true,
          file: file.name,
          pipeline: result.definition.name,
          stages: result.definition.stages.map((stage) => stage.name),
          diagnostics: warningsOf(file.text, result.definition, Date.now()),
        }
      : { ok: false, file: file.name, diagnostics: result.diagnostics };
    terminal.print(`${JSON.stringify(answer)}\n`);
  } else if (result.ok) {
    const warnings = warningsOf(file.text, result.definition, Date.now());
    const count = result.definition.stages.length;
    terminal.print(
      `${printableText(file.name)}: pipeline '${printableText(result.definition.name)}' with ${count} stage${count === 1 ? '' : 's'}, no problems.\n`,
    );
    for (const warning of warnings)
      terminal.note(`penstock: ${printableText(file.name)}, ${printableText(diagnosticLine(warning))}`);
    if (extensions.unknown.length > 0)
      terminal.note(
        `penstock: not checked, for they are in no lock or were never fetched: ${printableText(extensions.unknown.join(', '))}.`,
      );
  } else {
    terminal.print(problemsText(file, result.diagnostics, wantsColor(colorChoice(args), env, terminal.outIsTerminal)));
  }
  return result.ok ? EXIT.success : EXIT.failure;
}

/** The problems of a file for a person; also what `run` and `trigger` show when they refuse one. */
export function problemsText(
  file: { readonly name: string; readonly text: string },
  diagnostics: readonly Diagnostic[],
  color: boolean,
): string {
  const text = formatDiagnostics(file.text, diagnostics, file.name, { color });
  return text.trim() === '' ? `${diagnostics.map(diagnosticLine).join('\n')}\n` : text;
}
