import { resolve } from 'node:path';
import { systemReason } from '@penstock/errors';
import { FORMATS, migrate, UnreadableSource, type Format, type Migration } from '@penstock/migrate';
import { diagnosticLine } from '@penstock/pipeline';
import type { Command, CommandContext, ParsedArguments } from '../command-line/command.ts';
import { readPipelineFile } from '../command-line/pipeline-file.ts';
import { printableText } from '../output/printable-text.ts';
import { writeNew } from '../process/whole-file.ts';
import { EXIT, FileError, RefusedFile, UsageError } from '../process/errors.ts';

export const migrateCommand: Command = {
  spec: {
    name: 'migrate',
    usage: '[options] <file>',
    about:
      'Translates a CI file of GitHub Actions, GitLab CI or Woodpecker into a pipeline file, which it prints. What cannot be translated is listed on standard error, ' +
      'with the line at which it stands and what to do; a step that is not translated fails its stage, so that nothing looks done that is not. Nothing runs and no server is asked.',
    options: {
      from: {
        type: 'string',
        value: 'FORMAT',
        text: `What the file is: ${FORMATS.join(', ')}. Known by the file itself, mostly.`,
      },
      output: {
        type: 'string',
        value: 'FILE',
        text: 'Where the pipeline file is written; a file that is there already is never replaced.',
      },
      json: {
        type: 'boolean',
        text: 'One JSON object: {"format", "pipeline", "keys", "translated", "notes": [{"line", "what", "remedy"}]}.',
      },
    },
    positionals: { min: 1, max: 1, missing: 'name the file to translate' },
    examples: [
      ['penstock migrate .github/workflows/ci.yml', 'the pipeline file, and what is missing in it'],
      ['penstock migrate .gitlab-ci.yml --output .pipeline.yaml', 'written to a file'],
      ['penstock migrate --from woodpecker - < ci.yaml', 'from standard input'],
    ],
    exitCodes: [
      [EXIT.success, 'translated, as far as it can be'],
      [EXIT.failure, 'what came of it would be refused; it is printed all the same'],
      [EXIT.usage, 'the file is none that can be translated, or wrong usage'],
    ],
  },
  run: migrateFile,
};

async function migrateFile(args: ParsedArguments, { cwd, terminal }: CommandContext): Promise<number> {
  const file = await readPipelineFile(args.positionals[0], cwd);
  const migration = translated(file.text, args.positionals[0] ?? '-', formatOf(args.text('from')), file.name);
  const { format, keys, notes, problems, text } = migration;
  const output = args.text('output');
  if (output !== undefined) await write(resolve(cwd, output), output, text);
  if (args.flag('json')) {
    const pipeline = output === undefined ? { pipeline: text } : {};
    terminal.print(`${JSON.stringify({ format, ...pipeline, keys, translated: migration.translated, notes })}\n`);
  } else {
    if (output === undefined) terminal.print(text);
    for (const { line, what, remedy } of notes)
      terminal.note(
        printableText(`${file.name}:${line}: not translated: ${what}${remedy === undefined ? '' : ` (${remedy})`}`),
      );
    terminal.note(
      `penstock: ${migration.translated} of ${keys} keys translated${notes.length === 0 ? '' : `, ${notes.length} told above`}.`,
    );
  }
  for (const problem of problems)
    terminal.note(`penstock: would be refused: ${printableText(diagnosticLine(problem))}`);
  return problems.length === 0 ? EXIT.success : EXIT.failure;
}

function formatOf(text: string | undefined): Format | undefined {
  const format = FORMATS.find((one) => one === text);
  if (text !== undefined && format === undefined)
    throw new UsageError(`--from takes ${FORMATS.join(', ')}, not '${printableText(text)}'`, 'migrate');
  return format;
}

function translated(text: string, file: string, format: Format | undefined, shown: string): Migration {
  try {
    return migrate(text, { file, format });
  } catch (error) {
    if (error instanceof UnreadableSource)
      throw new RefusedFile(
        `penstock: ${printableText(shown)} cannot be translated: ${printableText(error.message)}`,
        EXIT.usage,
      );
    throw error;
  }
}

async function write(path: string, shown: string, text: string): Promise<void> {
  try {
    await writeNew(path, text);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why = code === 'EEXIST' ? 'it is there already' : systemReason(error);
    throw new FileError(`cannot write ${printableText(shown)}: ${printableText(why)}`, { cause: error });
  }
}
