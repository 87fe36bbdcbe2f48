import { resolve, join } from 'node:path';
import { lstat, mkdir, mkdtemp, rename, rm, rmdir } from 'node:fs/promises';
import { makeFolder } from '@penstock/async';
import { systemReason } from '@penstock/errors';
import type { Command, CommandContext, CommandSpec, ParsedArguments } from '../command-line/command.ts';
import { EXIT, NotWritten, ServerUnreached, UsageError } from '../process/errors.ts';
import { stageFolder } from '../process/stage-folder.ts';
import { printableText } from '../output/printable-text.ts';
import { tableLines } from '../output/table.ts';
import { contentOf, keptFiles, type KeptOnServer } from '../server/artifacts.ts';
import { findRun } from '../server/graphql.ts';
import { serverClient, type ServerClient } from '../server/http-client.ts';
import { readCredentials } from '../server/read-credentials.ts';
import { noSuchRun, runIdOf } from '../server/run-id.ts';
import { serverAddress } from '../server/server-address.ts';
import { SERVER_ENVIRONMENT, SERVER_EXIT_CODES, SERVER_OPTIONS } from '../server/server-options.ts';

const spec: CommandSpec = {
  name: 'artifacts',
  usage: '[options] <run> [stage]',
  about:
    'Lists the files that the stages of a run on a server keep, or of one stage, and with `--download` fetches them: into a folder for each stage, ' +
    'all at once or not at all; what is there already is never replaced. Each is checked against the hash that the server lists.',
  options: {
    download: { type: 'string', value: 'DIR', text: 'Fetch them into this folder, which is made where it is missing.' },
    json: { type: 'boolean', text: 'The list as JSON, on one line.' },
    ...SERVER_OPTIONS,
  },
  positionals: { min: 1, max: 2, missing: 'artifacts of which run? Give its id: penstock artifacts <run>' },
  environment: SERVER_ENVIRONMENT,
  examples: [
    ['penstock artifacts 0192f0c1-2b3c-7abc-8def-0123456789ab', 'what the run keeps, and for how long'],
    ['penstock artifacts 0192f0c1-… build --download out', 'the files of one stage, in out/build'],
  ],
  exitCodes: [
    [EXIT.success, 'they were listed, or fetched'],
    [EXIT.failure, 'they could not be written'],
    [EXIT.usage, 'wrong usage'],
    ...SERVER_EXIT_CODES,
  ],
};

export const artifactsCommand: Command = { spec, run: artifacts };

async function artifacts(args: ParsedArguments, context: CommandContext): Promise<number> {
  const id = runIdOf(args, 'artifacts');
  const { terminal, env, cwd } = context;
  const server = serverAddress(args.text('server'), env);
  const client = serverClient(server, await readCredentials(args, context, server));
  const run = await findRun(client, id);
  if (run === undefined) throw noSuchRun(id, server);
  const stage = args.positionals[1];
  if (stage !== undefined && !run.stages.includes(stage))
    throw new UsageError(`the run has no stage '${printableText(stage)}'`, 'artifacts');
  const files = await keptFiles(client, run, stage, terminal);
  const target = args.text('download');
  if (target !== undefined) await download(client, files, resolve(cwd, target));
  if (args.flag('json')) terminal.print(`${JSON.stringify(files)}\n`);
  else if (files.length === 0) terminal.note('penstock: the run keeps no files.');
  else for (const line of lines(files)) terminal.print(`${line}\n`);
  return EXIT.success;
}

function lines(files: readonly KeptOnServer[]): string[] {
  return tableLines(
    [{ title: 'STAGE' }, { title: 'BYTES', isRight: true }, { title: 'UNTIL' }, { title: 'FILE' }],
    files.map(({ stage, sizeBytes, expiresAt, path }) => [
      printableText(stage),
      String(sizeBytes),
      printableText(expiresAt.replace('T', ' ').replace(/\.\d+Z$/, 'Z')),
      printableText(path),
    ]),
  );
}

/** What a server lists is data of a stranger: it is laid out by the same rules as on a runner. */
async function download(client: ServerClient, files: readonly KeptOnServer[], target: string): Promise<void> {
  const { ArtifactsFailed, unpackFiles } = await import('@penstock/artifacts');
  let incoming: string | undefined;
  try {
    await makeFolder(target, 0o777);
    incoming = await mkdtemp(join(target, '.penstock-'));
    const byFolder = Map.groupBy(files, (file) => stageFolder(file.stage));
    for (const name of byFolder.keys()) await assertFree(join(target, name));
    for (const [name, ofStage] of byFolder) {
      const folder = join(incoming, name);
      await mkdir(folder);
      const byPath = new Map(ofStage.map((file) => [file.path, file]));
      await unpackFiles(
        folder,
        ofStage.map(({ path, sizeBytes, sha256 }) => ({ path, sizeBytes, sha256, executable: false })),
        ({ path }) => contentOf(client, byPath.get(path) as KeptOnServer),
      );
    }
    // Those of one stage alone would be in the way of the next try.
    for (const name of byFolder.keys()) await rename(join(incoming, name), join(target, name));
    await rmdir(incoming);
  } catch (error) {
    if (incoming !== undefined) await rm(incoming, { recursive: true, force: true });
    if (error instanceof ArtifactsFailed)
      throw new ServerUnreached(`${client.server.base} lists files that no Penstock server would: ${error.message}`, {
        cause: error,
      });
    throw (error as NodeJS.ErrnoException).code === undefined
      ? error
      : new NotWritten(`the files cannot be written to ${printableText(target)} (${systemReason(error)})`, {
          cause: error,
        });
  }
}

/** Stages are called like folders of a checkout, `test` or `docs`: what stands there may be somebody's work. */
async function assertFree(folder: string): Promise<void> {
  const there = await lstat(folder).catch(() => undefined);
  if (there !== undefined)
    throw new NotWritten(`${printableText(folder)} is there already: remove it, or name another folder to download to`);
}
