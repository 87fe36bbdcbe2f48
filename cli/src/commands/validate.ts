import { diagnosticLine, formatDiagnostics, parsePipeline, type Diagnostic } from '@penstock/pipeline';
import type { Command, CommandContext, ParsedArguments } from '../command.ts';
import { EXIT } from '../errors.ts';
import { COLOR_OPTIONS, colorWish } from '../output/color-options.ts';
import { printableText } from '../output/printable-text.ts';
import { wantsColor } from '../output/terminal.ts';
import { readPipelineFile } from '../pipeline-file.ts';

export const validateCommand: Command = {
  spec: {
    name: 'validate',
    usage: '[options] [file]',
    about:
      'Checks a pipeline file and points at every problem with its line, its column and what may have been meant. Nothing runs and no server is asked; ' +
      'a file that passes here is a file that a server of this version takes.',
    options: {
      json: { type: 'boolean', text: 'One JSON object: {"ok", "file", "pipeline", "stages", "diagnostics": [{"line", "column", "path", "message", "suggestion"}]}.' },
      ...COLOR_OPTIONS,
    },
    positionals: { min: 0, max: 1, missing: '' },
    examples: [
      ['penstock validate', 'the pipeline file of this folder'],
      ['penstock validate ci/release.yaml', 'another file'],
      ['git show main:.pipeline.yaml | penstock validate -', 'from standard input'],
    ],
    exitCodes: [[EXIT.success, 'the file is good'], [EXIT.failure, 'it has problems'], [EXIT.usage, 'there is no such file, or wrong usage']],
  },
  run: validate,
};

async function validate(args: ParsedArguments, { cwd, env, terminal }: CommandContext): Promise<number> {
  const file = await readPipelineFile(args.positionals[0], cwd);
  const result = parsePipeline(file.text);
  if (args.flag('json')) {
    const answer = result.ok
      ? { ok: true, file: file.name, pipeline: result.definition.name, stages: result.definition.stages.map((stage) => stage.name), diagnostics: [] }
      : { ok: false, file: file.name, diagnostics: result.diagnostics };
    terminal.print(`${JSON.stringify(answer)}\n`);
  } else if (result.ok) {
    const count = result.definition.stages.length;
    terminal.print(`${printableText(file.name)}: pipeline '${printableText(result.definition.name)}' with ${count} stage${count === 1 ? '' : 's'}, no problems.\n`);
  } else {
    terminal.print(problemsText(file, result.diagnostics, wantsColor(colorWish(args), env, terminal.outIsTerminal)));
  }
  return result.ok ? EXIT.success : EXIT.failure;
}

/** The problems of a file for a person; also what `run` and `trigger` show when they refuse one. */
export function problemsText(file: { readonly name: string; readonly text: string }, diagnostics: readonly Diagnostic[], color: boolean): string {
  const text = formatDiagnostics(file.text, diagnostics, file.name, { color });
  return text.trim() === '' ? `${diagnostics.map(diagnosticLine).join('\n')}\n` : text;
}
