import type { Command, CommandContext, ParsedArguments } from '../command-line/command.ts';
import { INPUT_OPTIONS, inputValues } from '../command-line/input-values.ts';
import { EXIT, UsageError } from '../process/errors.ts';
import { printableText } from '../output/printable-text.ts';
import { readCredentials } from '../server/read-credentials.ts';
import { FOLLOW_OPTIONS, followNewRun } from '../server/follow-run.ts';
import { dispatchPipeline } from '../server/graphql.ts';
import { serverClient } from '../server/http-client.ts';
import { serverAddress } from '../server/server-address.ts';
import { SERVER_ENVIRONMENT, SERVER_OPTIONS } from '../server/server-options.ts';

export const dispatchCommand: Command = {
  spec: {
    name: 'dispatch',
    usage: '[options] <repository> <ref>',
    about:
      'Has a server run the pipeline file of a repository at a branch or a tag, says the id of the run and follows its logs to the end. The repository is ' +
      'one that you have connected, named with its provider: git_host_a/acme/shop. ^C ends the watching, not the run.',
    options: {
      detach: { type: 'boolean', short: 'd', text: 'Do not follow: print the run’s id on standard output and go.' },
      ...INPUT_OPTIONS,
      ...FOLLOW_OPTIONS,
      ...SERVER_OPTIONS,
    },
    positionals: { min: 2, max: 2, missing: 'a repository and a branch or a tag of it' },
    environment: SERVER_ENVIRONMENT,
    examples: [
      ['penstock dispatch git_host_a/acme/shop main', 'the file at the head of a branch'],
      ['penstock dispatch git_host_b/acme/shop v1.2 --input target=production', 'at a tag, with an input'],
    ],
    exitCodes: [
      [EXIT.success, 'the run ended SUCCESS; with --detach: it was accepted'],
      [EXIT.failure, 'the run ended otherwise'],
      [EXIT.usage, 'wrong usage'],
      [EXIT.unreached, 'the server or the git host was not reached, or is not available now'],
      [EXIT.refused, 'the server refused: the repository, the ref, or its file'],
      [EXIT.interrupted, 'stopped watching after ^C; the run goes on'],
    ],
  },
  run: dispatch,
};

async function dispatch(args: ParsedArguments, context: CommandContext): Promise<number> {
  const { terminal, env } = context;
  const server = serverAddress(args.text('server'), env);
  const [named = '', ref = ''] = args.positionals;
  const [, provider, repository] = /^([^/]+)\/(.+)$/.exec(named) ?? [];
  if (provider === undefined || repository === undefined || !repository.includes('/'))
    throw new UsageError(
      `the repository is named with its provider, as in git_host_a/acme/shop, not '${printableText(named)}'`,
      'dispatch',
    );
  const inputs = inputValues(args, 'dispatch');
  const client = serverClient(server, await readCredentials(args, context, server));
  const run = await dispatchPipeline(client, { provider, repository, ref, inputs }, (line) => terminal.note(line));
  return await followNewRun({ client, run, args, context });
}
