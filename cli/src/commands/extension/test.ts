import { availableParallelism } from 'node:os';
import { parsePipeline, type ResolvedExtension } from '@penstock/pipeline';
import type { Command, CommandContext, ParsedArguments } from '../../command-line/command.ts';
import { EXIT, RefusedFile, UsageError } from '../../process/errors.ts';
import { declaredOutputs } from '../../extensions/declared-outputs.ts';
import { once, readExtension } from '../../extensions/extension-folder.ts';
import { clientOf, fetchPackages, resolveFromServer } from '../../extensions/file-extensions.ts';
import { keepPackage, openPackageCache } from '../../extensions/package-cache.ts';
import { LocalExecutors } from '../../local/local-executors.ts';
import { COLOR_OPTIONS, colorChoice } from '../../command-line/color-options.ts';
import { printableText } from '../../output/printable-text.ts';
import { wantsColor } from '../../output/terminal.ts';
import { SERVER_ENVIRONMENT, SERVER_OPTIONS } from '../../server/server-options.ts';
import { execute } from '../run.ts';
import { problemsText } from '../validate.ts';

export const extensionTestCommand: Command = {
  spec: {
    name: 'extension test',
    usage: '[options] [folder] [input=value]...',
    about:
      'Runs an extension on this machine as the only stage of a pipeline, with the inputs given, and prints its outputs. It works in the folder that you are in. ' +
      'Extensions that it uses itself are asked of a server.',
    options: {
      quiet: {
        type: 'boolean',
        short: 'q',
        text: 'Of the output only the end of each failed stage’s, and the summary.',
      },
      json: { type: 'boolean', text: 'One JSON event a line instead of text.' },
      ...COLOR_OPTIONS,
      ...SERVER_OPTIONS,
    },
    positionals: { min: 0, max: 200, missing: '' },
    environment: SERVER_ENVIRONMENT,
    examples: [
      ['penstock extension test hello who=world', 'the extension in the folder hello'],
      ['penstock extension test who=world times=3', 'the one in this folder'],
    ],
    exitCodes: [
      [EXIT.success, 'it ended SUCCESS'],
      [EXIT.failure, 'it failed, or the extension has problems'],
      [EXIT.usage, 'an input is missing or wrong, there is no such extension, or wrong usage'],
    ],
  },
  run: test,
};

async function test(args: ParsedArguments, context: CommandContext): Promise<number> {
  const { cwd, env, terminal } = context;
  const { folder, inputs } = readPositionals(args.positionals);
  const color = wantsColor(colorChoice(args), env, terminal.errIsTerminal);
  const { manifest, manifestText, bytes, hash } = await readExtension(folder, cwd, color);
  const uses = `${manifest.id}@${manifest.version.replace(/\+.*$/, '')}`;
  const own: ResolvedExtension = { uses, id: manifest.id, version: manifest.version, hash, manifest: manifestText };
  const stage = manifest.id.slice(manifest.id.indexOf('/') + 1);
  // JSON is YAML: an input may hold anything.
  const body = { uses, with: inputs };
  const file = {
    name: `the test of ${manifest.id}`,
    text: JSON.stringify({ pipeline: { name: `test of ${manifest.id}` }, stages: { [stage]: body } }, undefined, 2),
  };
  const client = clientOf(args, context);
  const { extensions, refusals } =
    manifest.uses.length === 0
      ? { extensions: [], refusals: new Map<string, string>() }
      : await resolveFromServer(await client(), manifestText, []);
  const slots = availableParallelism();
  const executors = new LocalExecutors({ slots, warn: (message) => terminal.note(`penstock: ${message}`) });
  try {
    await executors.findFor(manifestText, context.cwd);
    const { lacking } = executors;
    const parsed = parsePipeline(file.text, { extensions: [own, ...extensions], refusals, lacking });
    if (!parsed.ok) throw new RefusedFile(problemsText(file, parsed.diagnostics, color).trimEnd(), EXIT.usage);
    const cache = openPackageCache(env);
    await keepPackage(cache, hash, () => once(bytes));
    const extensionFolders = await fetchPackages(parsed.definition, cache, client);
    return await execute(parsed.definition, {
      file,
      inputs: {},
      slots,
      executors,
      args,
      context,
      extensionFolders,
      ended: (run) => {
        const tested = { name: stage, body, outputs: manifest.outputs.map(({ name }) => name) };
        const outputs =
          manifest.form === 'stages'
            ? declaredOutputs(tested, [own, ...extensions], run)
            : Object.entries(run.stages.get(0)?.outputs ?? {});
        for (const [key, value] of outputs) terminal.note(`output ${printableText(key)}=${printableText(value)}`);
      },
    });
  } finally {
    await executors.close();
  }
}

function readPositionals(positionals: readonly string[]): {
  readonly folder: string;
  readonly inputs: Readonly<Record<string, string>>;
} {
  const [first, ...others] = positionals;
  const isFolder = first !== undefined && !/^[A-Za-z_][A-Za-z0-9_-]*=/.test(first);
  const inputs: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const text of isFolder ? others : positionals) {
    const at = text.indexOf('=');
    if (at < 1) throw new UsageError(`'${printableText(text)}' is no input: write it as name=value`, 'extension test');
    inputs[text.slice(0, at)] = text.slice(at + 1);
  }
  return { folder: isFolder ? first : '.', inputs };
}
