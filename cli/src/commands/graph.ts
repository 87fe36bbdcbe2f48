import { parsePipeline } from '@penstock/pipeline';
import { COLOR_OPTIONS, colorChoice } from '../command-line/color-options.ts';
import type { Command, CommandContext, ParsedArguments } from '../command-line/command.ts';
import { readPipelineFile } from '../command-line/pipeline-file.ts';
import { knownExtensions } from '../extensions/known-extensions.ts';
import { painter } from '../output/painter.ts';
import { dotText, mermaidText, plannedLines, plannedStages } from '../output/planned-graph.ts';
import { printableText } from '../output/printable-text.ts';
import { wantsColor } from '../output/terminal.ts';
import { EXIT, RefusedFile, UsageError } from '../process/errors.ts';
import { problemsText } from './validate.ts';

const FORMS = ['json', 'dot', 'mermaid'] as const;

export const graphCommand: Command = {
  spec: {
    name: 'graph',
    usage: '[options] [file]',
    about:
      'Draws what a pipeline file would run: each stage below the one that it comes after, every expansion of a matrix, and what is not plain about a stage. ' +
      'Nothing runs and no server is asked.',
    options: {
      json: {
        type: 'boolean',
        text: 'One JSON object: {"pipeline", "stages": [{"name", "matrix", "after", "remarks"}]}.',
      },
      dot: { type: 'boolean', text: 'A digraph for Graphviz.' },
      mermaid: { type: 'boolean', text: 'A flowchart for Mermaid, as Markdown of git hosts shows it.' },
      ...COLOR_OPTIONS,
    },
    positionals: { min: 0, max: 1, missing: '' },
    examples: [
      ['penstock graph', 'the pipeline file of this folder'],
      ['penstock graph --dot ci/release.yaml | dot -Tsvg > release.svg', 'a picture'],
      ['git show main:.pipeline.yaml | penstock graph -', 'from standard input'],
    ],
    exitCodes: [
      [EXIT.success, 'drawn'],
      [EXIT.usage, 'the file has problems or is not there, or wrong usage'],
    ],
  },
  run: graph,
};

async function graph(args: ParsedArguments, { cwd, env, terminal }: CommandContext): Promise<number> {
  const forms = FORMS.filter((form) => args.flag(form));
  if (forms.length > 1)
    throw new UsageError(`choose one of ${forms.map((form) => `--${form}`).join(' and ')}`, 'graph');
  const file = await readPipelineFile(args.positionals[0], cwd);
  const extensions = await knownExtensions(file, args.positionals[0], env, cwd);
  const result = parsePipeline(file.text, { extensions: extensions.known, unresolved: 'accept' });
  if (!result.ok)
    throw new RefusedFile(
      problemsText(file, result.diagnostics, wantsColor(colorChoice(args), env, terminal.errIsTerminal)).trimEnd(),
      EXIT.usage,
    );
  const stages = plannedStages(result.definition);
  const { name } = result.definition;
  if (args.flag('json')) terminal.print(`${JSON.stringify({ pipeline: name, stages })}\n`);
  else if (args.flag('dot')) terminal.print(dotText(name, stages));
  else if (args.flag('mermaid')) terminal.print(mermaidText(stages));
  else {
    const paint = painter(wantsColor(colorChoice(args), env, terminal.outIsTerminal));
    const lines = plannedLines(stages, paint, terminal.columns(env) ?? Infinity);
    terminal.print(`Pipeline ${printableText(name)}\n\n${lines.join('\n')}\n`);
  }
  if (extensions.unknown.length > 0)
    terminal.note(
      `penstock: shown as single stages, for they are in no lock or were never fetched: ${printableText(extensions.unknown.join(', '))}.`,
    );
  return EXIT.success;
}
