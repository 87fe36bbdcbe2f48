import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { systemReason } from '@penstock/errors';
import type { ParseResult, PipelineDefinition } from '@penstock/pipeline';
import type { RunState } from '@penstock/run';
import { wholeNumber } from '../command-line/arguments.ts';
import type { Command, CommandContext, CommandSpec, ParsedArguments } from '../command-line/command.ts';
import { cacheFolder } from '../process/cache-folder.ts';
import { MADE_FROM } from '../process/made-from.ts';
import { EXIT, RefusedFile } from '../process/errors.ts';
import type { Resolution } from '../extensions/file-extensions.ts';
import { dieOf, Interrupts } from '../process/interrupts.ts';
import { LocalExecutors, shellsAtOnce } from '../local/local-executors.ts';
import { inheritedEnvironment } from '../local/inherited-environment.ts';
import { COLOR_OPTIONS, colorChoice } from '../command-line/color-options.ts';
import { badInput, INPUT_OPTIONS, inputValues } from '../command-line/input-values.ts';
import { SECRET_OPTIONS, secretValues } from '../command-line/secret-options.ts';
import { JsonReporter } from '../output/json-reporter.ts';
import type { OutputWriter } from '../output/output-writer.ts';
import { printableText } from '../output/printable-text.ts';
import { wantsColor } from '../output/terminal.ts';
import { TextReporter } from '../output/text-reporter.ts';
import { readPipelineFile, type PipelineFile } from '../command-line/pipeline-file.ts';
import { SERVER_ENVIRONMENT, SERVER_OPTIONS } from '../server/server-options.ts';

const JOBS_MAX = 1024;
/** After a second ^C the terminal has this time: one that has not taken the summary by then is stopped. */
const LAST_WORDS_MS = 500;

const spec: CommandSpec = {
  name: 'run',
  usage: '[options] [file]',
  about:
    'Runs a pipeline file on this machine, with no server and no broker, by the same rules and with the same events as a server would. The stages work in the ' +
    'folder that you are in, with your environment; those with `workspace: fresh` in a copy of the files that git knows. A file with `uses` asks a server for its extensions, unless they are locked and were fetched before.',
  options: {
    jobs: {
      type: 'string',
      short: 'j',
      value: 'N',
      text: 'How many stages run at a time; default: the number of processors.',
    },
    quiet: { type: 'boolean', short: 'q', text: 'Of the output only the end of each failed stage’s, and the summary.' },
    yes: { type: 'boolean', short: 'y', text: 'Approve every stage that waits for approval, without asking.' },
    json: { type: 'boolean', text: 'One JSON event a line instead of text, as in the log stream of a server.' },
    ...INPUT_OPTIONS,
    ...SECRET_OPTIONS,
    ...COLOR_OPTIONS,
    ...SERVER_OPTIONS,
  },
  positionals: { min: 0, max: 1, missing: '' },
  environment: [
    ['NO_COLOR', 'no colours, if it is set to anything'],
    ['PENSTOCK_DEBUG', 'say more about errors of Penstock itself'],
    ...SERVER_ENVIRONMENT,
  ],
  examples: [
    ['penstock run', 'the pipeline file of this folder'],
    ['penstock run -j1 ci/release.yaml', 'another file, one stage after the other'],
    ['penstock run --input version=1.4.0', 'with a value for an input of the file'],
    ['penstock run --json | jq -r "select(.reason)"', 'what went wrong, for a program'],
  ],
  exitCodes: [
    [EXIT.success, 'the run ended SUCCESS'],
    [EXIT.failure, 'a stage failed'],
    [EXIT.usage, 'the file has problems or is not there, or wrong usage'],
    [EXIT.interrupted, 'cancelled by ^C: stages get SIGTERM, and SIGKILL after 10 s or at a second ^C'],
  ],
};

export const runCommand: Command = { spec, run };

async function run(args: ParsedArguments, context: CommandContext): Promise<number> {
  const { terminal, env, cwd } = context;
  const jobs = args.text('jobs');
  const slots =
    jobs === undefined ? availableParallelism() : wholeNumber(spec, 'jobs', jobs, { min: 1, max: JOBS_MAX });
  const given = inputValues(args, spec.name);
  const secrets = await secretValues(args, context, spec.name);
  const file = await readPipelineFile(args.positionals[0], cwd);
  const executors = new LocalExecutors({ slots, warn: (message) => terminal.note(`penstock: ${message}`) });
  // It comes up while this process loads and parses. More would take the processor from both, and a chain needs none.
  void executors.prewarm(1);
  try {
    const { resolveInputs } = await import('@penstock/pipeline');
    const resolution = await extensionsOf(file, args, context);
    await executors.findFor(file.text, cwd);
    const { parsed, keep } = await definitionOf(file, resolution, executors, args, context);
    if (!parsed.ok) {
      const { problemsText } = await import('./validate.ts');
      const color = wantsColor(colorChoice(args), env, terminal.errIsTerminal);
      throw new RefusedFile(problemsText(file, parsed.diagnostics, color).trimEnd(), EXIT.usage);
    }
    const inputs = resolveInputs(parsed.definition, given);
    if (!inputs.ok) throw badInput(inputs, given, spec.name);
    const code = await execute(parsed.definition, {
      file,
      inputs: inputs.values,
      secrets,
      slots,
      executors,
      args,
      context,
      extensionFolders: await resolution.folders(parsed.definition),
    });
    keep?.(parsed.definition);
    return code;
  } finally {
    await executors.close();
  }
}

interface ReadDefinition {
  readonly parsed: ParseResult;
  /** Lets later runs know; nothing of this one waits for it. */
  readonly keep?: ((definition: PipelineDefinition) => void) | undefined;
}

/** A file is read once: what it means is known to the runs after it, until it or the program is another. */
async function definitionOf(
  file: PipelineFile,
  { extensions, refusals }: Resolution,
  { lacking }: LocalExecutors,
  args: ParsedArguments,
  { env, cwd }: CommandContext,
): Promise<ReadDefinition> {
  const { parsePipeline } = await import('@penstock/pipeline');
  const read = (): ParseResult => parsePipeline(file.text, { extensions, refusals, lacking });
  // What extensions are resolved to is not the file's alone to say.
  if (MADE_FROM === undefined || args.positionals[0] === '-' || file.text.includes('uses')) return { parsed: read() };
  const { KnownDefinitions } = await import('../local/known-definitions.ts');
  const known = new KnownDefinitions(cacheFolder(env, 'definitions'), MADE_FROM);
  const asked = { path: resolve(cwd, file.name), text: file.text, lacking };
  const definition = known.find(asked);
  if (definition !== undefined) return { parsed: { ok: true, definition } };
  return { parsed: read(), keep: (fresh) => known.keep(asked, fresh) };
}

interface Extensions extends Resolution {
  readonly folders: (definition: PipelineDefinition) => Promise<ReadonlyMap<string, string>>;
}

/** Loads what extensions need only for a file that uses some. */
async function extensionsOf(file: PipelineFile, args: ParsedArguments, context: CommandContext): Promise<Extensions> {
  const { usesOf } = await import('@penstock/pipeline');
  if (!file.text.includes('uses') || usesOf(file.text).length === 0)
    return { extensions: [], refusals: new Map(), folders: async () => new Map() };
  const { clientOf, fetchPackages, resolveFromCache, resolveFromServer } =
    await import('../extensions/file-extensions.ts');
  const { lockNameOf, readLock } = await import('../extensions/lock-of-file.ts');
  const { openPackageCache } = await import('../extensions/package-cache.ts');
  const cache = openPackageCache(context.env);
  const client = clientOf(args, context);
  const lock = await readLock(lockNameOf(file, args.positionals[0] === '-'), context.cwd);
  const known = await resolveFromCache(file.text, lock, cache);
  const resolution =
    known === undefined
      ? await resolveFromServer(await client(), file.text, lock)
      : { extensions: known, refusals: new Map<string, string>() };
  return { ...resolution, folders: async (definition) => await fetchPackages(definition, cache, client) };
}

export interface LocalExecution {
  readonly file: PipelineFile;
  readonly inputs: Readonly<Record<string, string>>;
  /** By name; absent: none. */
  readonly secrets?: ReadonlyMap<string, string> | undefined;
  readonly slots: number;
  readonly executors: LocalExecutors;
  readonly args: ParsedArguments;
  readonly context: CommandContext;
  readonly extensionFolders: ReadonlyMap<string, string>;
  /** Called with the run as it ended, before the command does. */
  readonly ended?: ((run: RunState) => void) | undefined;
}

/** Runs a definition to its end, showing it; resolves to the exit code. */
export async function execute(
  definition: PipelineDefinition,
  { file, inputs, secrets = new Map(), slots, executors, args, context, extensionFolders, ended }: LocalExecution,
): Promise<number> {
  const { terminal, env, cwd } = context;
  void executors.prewarm(Math.min(slots, shellsAtOnce(definition)));
  const { LocalRun, localRunId } = await import('../local/local-run.ts');
  const { LocalCaches } = await import('../local/local-caches.ts');
  const { gatePrompt } = await import('../local/gate-prompt.ts');
  const { LocalWorkspace } = await import('../local/local-workspace.ts');
  const names = definition.stages.map((stage) => stage.name);
  const json = args.flag('json');
  const id = localRunId();
  const reporter = json
    ? new JsonReporter(terminal.out, names, { id })
    : new TextReporter({
        out: terminal.out,
        stages: names,
        color: wantsColor(colorChoice(args), env, terminal.outIsTerminal),
        quiet: args.flag('quiet'),
        startedAtMs: Date.now(),
        columns: terminal.columns(env),
      });
  let hasSettled = false;
  let clearedUp: Promise<void> | undefined;
  // Before there is anything that a signal would leave behind.
  const interrupts = new Interrupts({
    first: (signal) => {
      if (clearedUp !== undefined) {
        void clearedUp.finally(() => dieOf(signal));
        return;
      }
      terminal.note('penstock: cancelling; what runs has 10 s to end, a second ^C ends it at once.');
      local.cancel();
    },
    again: (signal) => void leave(signal, executors, removed, terminal.out),
  });
  const workspace = new LocalWorkspace(cwd);
  // What another user has left there, from a container perhaps, changes nothing of how the run has ended.
  const removed = (): Promise<void> =>
    workspace.remove().catch((error: unknown) => {
      terminal.note(`penstock: ${workspace.scratch} could not be removed: ${printableText(systemReason(error))}`);
    });
  const local = new LocalRun({
    id,
    definition,
    yaml: file.text,
    inputs,
    secrets,
    caches: new LocalCaches(cacheFolder(env, 'caches')),
    workspace,
    executors,
    reporter,
    slots,
    // A stage gets those that it names, and no other.
    inheritedEnv: withoutVariables(inheritedEnvironment(env), [...secrets.keys()]),
    extensionFolders,
    keepText: json,
    askGate: gatePrompt(process.stdin, terminal, args.flag('yes')),
  });
  let isReaderGone = false;
  void terminal.out.closed.then(() => {
    isReaderGone = true;
    local.cancel();
  });
  try {
    local.start();
    const ending = await local.settled;
    hasSettled = true;
    reporter.finish();
    ended?.(ending);
    return (
      interrupts.exitCode ??
      (isReaderGone ? EXIT.brokenPipe : ending.status === 'SUCCESS' ? EXIT.success : EXIT.failure)
    );
  } finally {
    clearedUp = clearUp(executors, removed, hasSettled);
    await clearedUp;
  }
}

async function clearUp(executors: LocalExecutors, remove: () => Promise<void>, hasSettled: boolean): Promise<void> {
  const closed = executors.close();
  // Nobody is left who writes to the folder of a run that has settled: it goes while the helpers end.
  if (!hasSettled) await closed;
  await Promise.all([closed, remove()]);
}

function withoutVariables(
  env: Readonly<Record<string, string>>,
  names: readonly string[],
): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !names.includes(name)));
}

/** Kills what runs and clears up; then the summary, where the terminal still takes it. */
async function leave(
  signal: NodeJS.Signals,
  executors: LocalExecutors,
  remove: () => Promise<void>,
  out: OutputWriter,
): Promise<void> {
  // The last output of what is killed waits for the terminal, which may be stopped.
  const impatience = setTimeout(() => out.discard(), LAST_WORDS_MS);
  await executors.close();
  clearTimeout(impatience);
  await remove();
  setTimeout(() => dieOf(signal), LAST_WORDS_MS);
}
