import type { Command, CommandContext, ParsedArguments } from '../command-line/command.ts';
import { EXIT, ServerUnreached, UsageError } from '../process/errors.ts';
import { actionOf } from '../command-line/actions.ts';
import { cellsOf, fitText, printableText } from '../output/printable-text.ts';
import { readLoginCredentials } from '../server/read-credentials.ts';
import { fieldAnswered } from '../server/graphql.ts';
import { serverClient, type ServerClient } from '../server/http-client.ts';
import { fieldOf } from '../server/json.ts';
import { serverAddress } from '../server/server-address.ts';
import { LOGIN_ENVIRONMENT, LOGIN_OPTIONS } from '../server/server-options.ts';

type Action = (client: ServerClient, argument: string, args: ParsedArguments, context: CommandContext) => Promise<void>;

const ACTIONS: Readonly<Record<string, { readonly argument: string | null; readonly act: Action }>> = {
  create: { argument: 'name', act: create },
  ls: { argument: null, act: list },
  revoke: { argument: 'id', act: revoke },
  'revoke-all': { argument: null, act: revokeAll },
};

export const tokenCommand: Command = {
  spec: {
    name: 'token',
    usage: 'create <name> | ls | revoke <id> | revoke-all',
    about:
      'Personal tokens, for scripts that act as you: `create` prints a new one, once, `ls` shows what there is, `revoke` ends one at once, `revoke-all` all of them. A token does what its ' +
      'scopes allow and nothing else; it takes a login to make one.',
    options: {
      scope: {
        type: 'string',
        value: 'SCOPE',
        text: 'Of a new token, several times if need be: read (runs and their logs), trigger (start and cancel runs), publish (extensions), secrets (set, list and remove them).',
      },
      expires: {
        type: 'string',
        value: 'TIME',
        text: 'Of a new token: for how long, such as 90d; without it for ever.',
      },
      json: { type: 'boolean', text: 'The result of create and ls as JSON, on one line.' },
      ...LOGIN_OPTIONS,
    },
    positionals: {
      min: 1,
      max: 2,
      missing:
        'what about tokens? penstock token create <name>, penstock token ls, penstock token revoke <id>, penstock token revoke-all',
    },
    environment: LOGIN_ENVIRONMENT,
    examples: [
      [
        'penstock token create nightly --scope read --scope trigger --expires 90d > ~/.config/ci-token',
        'a token into a file',
      ],
      ['penstock trigger --token-file ~/.config/ci-token', 'and its use'],
      ['penstock token revoke 0192f0c1-2b3c-7abc-8def-0123456789ab', 'by the id that `ls` shows'],
    ],
    exitCodes: [
      [EXIT.success, 'done'],
      [EXIT.usage, 'wrong usage'],
      [EXIT.unreached, 'the server was not reached, or is not available now'],
      [EXIT.refused, 'not logged in, no such token, or the server refused'],
    ],
  },
  run: token,
};

async function token(args: ParsedArguments, context: CommandContext): Promise<number> {
  const [name = '', argument] = args.positionals;
  const action = actionOf('token', name, ACTIONS);
  if (action.argument === null ? argument !== undefined : argument === undefined) {
    throw new UsageError(
      action.argument === null
        ? `'token ${name}' takes no argument`
        : `'token ${name}' needs the ${action.argument} of the token`,
      'token',
    );
  }
  if (name === 'create' && args.texts('scope').length === 0)
    throw new UsageError('say what the token is for: --scope read, --scope trigger, --scope publish', 'token');
  const server = serverAddress(args.text('server'), context.env);
  await action.act(serverClient(server, await readLoginCredentials(context, server)), argument ?? '', args, context);
  return EXIT.success;
}

async function create(
  client: ServerClient,
  name: string,
  args: ParsedArguments,
  { terminal }: CommandContext,
): Promise<void> {
  const scopes = args.texts('scope').flatMap((text) => text.split(','));
  const expires = args.text('expires');
  const created = await fieldAnswered(
    client,
    // A server of an earlier release knows no end: it is named only where there is one.
    expires === undefined
      ? 'mutation ($name: String!, $scopes: [String!]!) { createApiToken(name: $name, scopes: $scopes) { id name token scopes createdAt } }'
      : 'mutation ($name: String!, $scopes: [String!]!, $expires: String!) { createApiToken(name: $name, scopes: $scopes, expires: $expires) { id name token scopes createdAt expiresAt } }',
    { name, scopes, ...(expires === undefined ? {} : { expires }) },
    'createApiToken',
  );
  const text = fieldOf(created, 'token');
  if (typeof text !== 'string')
    throw new ServerUnreached(`${client.server.base} gives no token: is it a Penstock server?`);
  terminal.print(`${args.flag('json') ? JSON.stringify(created) : printableText(text)}\n`);
  terminal.note(
    `The token ${printableText(String(fieldOf(created, 'id')))} is shown this once: keep it where nobody else reads it.`,
  );
}

async function list(
  client: ServerClient,
  _argument: string,
  args: ParsedArguments,
  { terminal }: CommandContext,
): Promise<void> {
  const tokens = await fieldAnswered(
    client,
    '{ apiTokens { id name scopes createdAt lastUsedAt expiresAt } }',
    {},
    'apiTokens',
  );
  if (!Array.isArray(tokens))
    throw new ServerUnreached(`${client.server.base} lists no tokens: is it a Penstock server?`);
  if (args.flag('json')) {
    terminal.print(`${JSON.stringify(tokens)}\n`);
    return;
  }
  const texts = (token: unknown, name: string): string => {
    const value = fieldOf(token, name);
    return printableText(Array.isArray(value) ? value.join(',') : typeof value === 'string' ? value : '-');
  };
  const rows = [
    ['ID', 'NAME', 'SCOPES', 'CREATED', 'LAST USED', 'EXPIRES'],
    ...tokens.map((entry) =>
      ['id', 'name', 'scopes', 'createdAt', 'lastUsedAt', 'expiresAt'].map((field) => texts(entry, field)),
    ),
  ];
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => cellsOf(row[column] ?? ''))));
  for (const row of rows)
    terminal.print(
      `${row
        .map((cell, column) => fitText(cell, widths[column] ?? 0))
        .join('  ')
        .trimEnd()}\n`,
    );
}

async function revoke(
  client: ServerClient,
  id: string,
  _args: ParsedArguments,
  { terminal }: CommandContext,
): Promise<void> {
  await fieldAnswered(client, 'mutation ($id: String!) { revokeApiToken(id: $id) }', { id }, 'revokeApiToken');
  terminal.note(`The token ${printableText(id)} is revoked.`);
}

async function revokeAll(
  client: ServerClient,
  _argument: string,
  _args: ParsedArguments,
  { terminal }: CommandContext,
): Promise<void> {
  const revoked = await fieldAnswered(client, 'mutation { revokeAllTokens }', {}, 'revokeAllTokens');
  terminal.note(`${Number(revoked)} ${revoked === 1 ? 'token is' : 'tokens are'} revoked.`);
}
