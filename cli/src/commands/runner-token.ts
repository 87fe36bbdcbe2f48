import type { Command, CommandContext, ParsedArguments } from '../command-line/command.ts';
import { printableText } from '../output/printable-text.ts';
import { EXIT, ServerUnreached } from '../process/errors.ts';
import { cellOf } from '../server/answered-cell.ts';
import { fieldAnswered } from '../server/graphql.ts';
import type { ServerClient } from '../server/http-client.ts';
import { fieldOf } from '../server/json.ts';
import { printList, type Listing } from '../server/list-action.ts';
import { runNamedAction, type NamedActions } from '../server/named-actions.ts';
import { readAdminCredentials } from '../server/read-credentials.ts';
import { SERVER_ENVIRONMENT, SERVER_EXIT_CODES, SERVER_OPTIONS } from '../server/server-options.ts';

const ACTIONS: NamedActions = {
  create: { takesName: false, act: create },
  ls: { takesName: false, act: list },
  revoke: { takesName: true, act: revoke },
};

export const runnerTokenCommand: Command = {
  spec: {
    name: 'runner-token',
    usage: 'create | ls | revoke <ID>',
    about:
      "Tokens by which machines become runners of a server (`penstock runner`): an administrator's are for everybody's runs, a user's for that user's own. " +
      '`create` prints a new one, once, for any number of machines; `ls` shows ' +
      'what there is and who is there by it; `revoke` ends one and cuts its runners off at once: what runs there is lost.',
    options: {
      name: { type: 'string', value: 'NAME', text: 'Of create: what it is for, as ls shows it.' },
      label: {
        type: 'string',
        value: 'LABEL',
        text: 'Of create: what its runners may offer beside what their machines are; may be given several times.',
      },
      tenant: {
        type: 'string',
        value: 'TENANT',
        text: "Of create, for administrators: its runners get this tenant's runs alone (user/<ID>, or service).",
      },
      expires: { type: 'string', value: 'TIME', text: 'Of create: for how long, such as 90d; without it for ever.' },
      untrusted: {
        type: 'boolean',
        text: 'Of create: its runners are given stages of runs that are not trusted, too.',
      },
      json: { type: 'boolean', text: 'The answer as JSON, on one line.' },
      ...SERVER_OPTIONS,
    },
    positionals: {
      min: 1,
      max: 2,
      missing:
        'what about runner tokens? penstock runner-token create, penstock runner-token ls, penstock runner-token revoke <ID>',
    },
    environment: [
      ['SERVICE_ADMIN_KEY', 'the administration key of the server; before the API key and a login'],
      ...SERVER_ENVIRONMENT,
    ],
    examples: [
      ["penstock runner-token create --name 'rack 4' --label gpu --expires 90d > token", 'a token into a file'],
      ['penstock runner --server https://ci.example.org --token-file token', 'and its use, on another machine'],
      ['penstock runner-token create --label mac', "logged in: one for machines that get one's own runs alone"],
      ['penstock runner-token revoke 3f9a…', 'one of them, by the id that ls shows'],
    ],
    exitCodes: [[EXIT.success, 'done'], [EXIT.usage, 'wrong usage'], ...SERVER_EXIT_CODES],
  },
  run: (args, context) =>
    runNamedAction(
      'runner-token',
      { actions: ACTIONS, names: 'the id of a runner token', credentials: readAdminCredentials },
      args,
      context,
    ),
};

async function create(
  client: ServerClient,
  _id: string,
  args: ParsedArguments,
  { terminal }: CommandContext,
): Promise<void> {
  const query = `mutation ($labels: [String], $expires: String, $tenant: String, $untrusted: Boolean, $name: String) {
    createRunnerToken(labels: $labels, expires: $expires, tenant: $tenant, untrusted: $untrusted, name: $name) { id name token labels untrusted tenant createdAt expiresAt }
  }`;
  const variables = {
    name: args.text('name') ?? '',
    labels: args.texts('label'),
    expires: args.text('expires'),
    tenant: args.text('tenant'),
    untrusted: args.flag('untrusted'),
  };
  const created = await fieldAnswered(client, query, variables, 'createRunnerToken');
  const token = fieldOf(created, 'token');
  if (typeof token !== 'string')
    throw new ServerUnreached(`${client.server.base} gives no token: is it a Penstock server?`);
  terminal.print(`${args.flag('json') ? JSON.stringify(created) : printableText(token)}\n`);
  terminal.note(`The runner token ${cellOf(created, 'id')} is shown this once: keep it where nobody else reads it.`);
}

async function list(client: ServerClient, _id: string, args: ParsedArguments, context: CommandContext): Promise<void> {
  const listing: Listing = {
    field: 'runnerTokens',
    query: '{ runnerTokens { id name labels untrusted tenant createdAt expiresAt runners { id name admittedUntil } } }',
    what: 'runner tokens',
    none: 'penstock: there are no runner tokens.',
    columns: ['NAME', 'RUNNERS', 'LABELS', 'UNTRUSTED', 'FOR', 'EXPIRES', 'ID'].map((title) => ({ title })),
    row: (entry) => [
      cellOf(entry, 'name'),
      String(namesOf(fieldOf(entry, 'runners')).length),
      namesOf(fieldOf(entry, 'labels'))
        .map((label) => printableText(String(label)))
        .join(','),
      fieldOf(entry, 'untrusted') === true ? 'too' : 'no',
      fieldOf(entry, 'tenant') === null ? 'all' : cellOf(entry, 'tenant'),
      fieldOf(entry, 'expiresAt') === null ? 'never' : cellOf(entry, 'expiresAt').slice(0, 10),
      cellOf(entry, 'id'),
    ],
  };
  await printList(client, listing, args, context);
}

async function revoke(
  client: ServerClient,
  id: string,
  args: ParsedArguments,
  { terminal }: CommandContext,
): Promise<void> {
  const query = 'mutation ($id: String) { revokeRunnerToken(id: $id) }';
  const revoked = await fieldAnswered(client, query, { id }, 'revokeRunnerToken');
  if (args.flag('json')) terminal.print(`${JSON.stringify({ revoked })}\n`);
  else terminal.note(`The runner token ${printableText(id)} is revoked, and its runners are cut off.`);
}

function namesOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
