import type { Command, CommandContext, ParsedArguments } from '../command-line/command.ts';
import { printableText } from '../output/printable-text.ts';
import { cellOf } from '../server/answered-cell.ts';
import { EXIT, ServerRefused } from '../process/errors.ts';
import { fieldAnswered } from '../server/graphql.ts';
import type { ServerClient } from '../server/http-client.ts';
import { fieldOf } from '../server/json.ts';
import { printList, type Listing } from '../server/list-action.ts';
import { runNamedAction, type NamedActions } from '../server/named-actions.ts';
import { SERVER_ENVIRONMENT, SERVER_EXIT_CODES, SERVER_OPTIONS } from '../server/server-options.ts';

const ACTIONS: NamedActions = {
  ls: { takesName: false, act: list },
  rm: { takesName: true, act: remove },
};

const FIELDS = ['id', 'repository', 'pipeline', 'ref', 'key', 'sizeBytes', 'createdAt', 'lastUsedAt'];
const COLUMNS = [
  { title: 'KEY' },
  { title: 'BYTES', isRight: true },
  { title: 'OF' },
  { title: 'REF' },
  { title: 'LAST USED' },
  { title: 'ID' },
];

export const cacheCommand: Command = {
  spec: {
    name: 'cache',
    usage: 'ls | rm <ID>',
    about:
      'What runs on a server have left for later ones under `cache`: `ls` shows it, what was used last first, `rm` removes one by its id. ' +
      'What is removed is made anew by the next run that asks for it.',
    options: {
      repository: {
        type: 'string',
        value: 'REPOSITORY',
        text: 'Only of this repository: the provider and the path, such as git_host_a/acme/shop.',
      },
      json: { type: 'boolean', text: 'The answer as JSON, on one line.' },
      ...SERVER_OPTIONS,
    },
    positionals: { min: 1, max: 2, missing: 'what about caches? penstock cache ls, penstock cache rm <ID>' },
    environment: SERVER_ENVIRONMENT,
    examples: [
      ['penstock cache ls', 'what there is'],
      ['penstock cache rm 3f9a…', 'one of them, by the id that ls shows'],
    ],
    exitCodes: [[EXIT.success, 'done'], [EXIT.usage, 'wrong usage'], ...SERVER_EXIT_CODES],
  },
  run: (args, context) => runNamedAction('cache', { actions: ACTIONS, names: 'the id of a cache' }, args, context),
};

async function list(client: ServerClient, _id: string, args: ParsedArguments, context: CommandContext): Promise<void> {
  const listing: Listing = {
    field: 'caches',
    query: `query ($repository: String) { caches(repository: $repository) { ${FIELDS.join(' ')} } }`,
    variables: { repository: args.text('repository') },
    what: 'caches',
    none: 'penstock: there are no caches.',
    columns: COLUMNS,
    row: (entry) => [
      cellOf(entry, 'key'),
      cellOf(entry, 'sizeBytes'),
      cellOf(entry, fieldOf(entry, 'repository') === null ? 'pipeline' : 'repository'),
      cellOf(entry, 'ref'),
      cellOf(entry, 'lastUsedAt')
        .replace('T', ' ')
        .replace(/\.\d+Z$/, 'Z'),
      cellOf(entry, 'id'),
    ],
  };
  await printList(client, listing, args, context);
}

async function remove(
  client: ServerClient,
  id: string,
  args: ParsedArguments,
  { terminal }: CommandContext,
): Promise<void> {
  const deleted = await fieldAnswered(
    client,
    'mutation ($id: String!) { deleteCache(id: $id) }',
    { id },
    'deleteCache',
  );
  if (args.flag('json')) terminal.print(`${JSON.stringify({ deleted })}\n`);
  if (deleted !== true)
    throw new ServerRefused(`there is no cache ${printableText(id)}; see what there is: penstock cache ls`);
  if (!args.flag('json')) terminal.note(`The cache ${printableText(id)} is removed.`);
}
