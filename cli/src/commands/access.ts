import type { Command, CommandContext, ParsedArguments } from '../command-line/command.ts';
import { printableText } from '../output/printable-text.ts';
import { EXIT, ServerRefused, UsageError } from '../process/errors.ts';
import { cellOf } from '../server/answered-cell.ts';
import { fieldAnswered } from '../server/graphql.ts';
import type { ServerClient } from '../server/http-client.ts';
import { printList } from '../server/list-action.ts';
import { runNamedAction, type NamedActions } from '../server/named-actions.ts';
import { readLoginCredentials } from '../server/read-credentials.ts';
import { LOGIN_ENVIRONMENT, LOGIN_OPTIONS, SERVER_EXIT_CODES } from '../server/server-options.ts';

const ROLES = 'read, trigger, approve or admin';
const ACTIONS: NamedActions = {
  ls: { takesName: true, act: list },
  grant: { takesName: true, act: grant },
  revoke: { takesName: true, act: revoke },
  mine: { takesName: false, act: mine },
  leave: { takesName: true, act: leave },
};

export const accessCommand: Command = {
  spec: {
    name: 'access',
    usage: 'ls <REPOSITORY> | grant <REPOSITORY> | revoke <REPOSITORY> | mine | leave <REPOSITORY>',
    about:
      'Who else may work on a repository that you have connected: `grant` lets somebody see its runs (read), start and cancel them (trigger), decide at its gates ' +
      '(approve), or also let others in and delete runs (admin); `revoke` takes that back at once, `ls` shows who is let in. `mine` shows what others let you ' +
      'do, `leave` gives it up. A repository is named by its path, by <provider>/<path>, or by its id.',
    options: {
      login: {
        type: 'string',
        value: 'LOGIN',
        text: 'Whom: the login at the identity provider, or an email address that it has verified.',
      },
      role: { type: 'string', value: 'ROLE', text: `Of grant: ${ROLES}.` },
      json: { type: 'boolean', text: 'The answer as JSON, on one line.' },
      ...LOGIN_OPTIONS,
    },
    positionals: {
      min: 1,
      max: 2,
      missing:
        'what about access? penstock access ls <REPOSITORY>, penstock access grant <REPOSITORY> --login <LOGIN> --role <ROLE>, penstock access revoke <REPOSITORY> --login <LOGIN>, penstock access mine, penstock access leave <REPOSITORY>',
    },
    environment: LOGIN_ENVIRONMENT,
    examples: [
      ['penstock access grant acme/shop --login grace --role trigger', 'Grace may see, start and cancel its runs'],
      ['penstock access ls acme/shop', 'who is let in'],
      ['penstock access revoke acme/shop --login grace', 'and no more from now on'],
    ],
    exitCodes: [[EXIT.success, 'done'], [EXIT.usage, 'wrong usage'], ...SERVER_EXIT_CODES],
  },
  run: (args, context) =>
    runNamedAction(
      'access',
      {
        actions: ACTIONS,
        names: 'a repository, such as acme/shop',
        credentials: (_, from, server) => readLoginCredentials(from, server),
      },
      args,
      context,
    ),
};

async function list(
  client: ServerClient,
  repository: string,
  args: ParsedArguments,
  context: CommandContext,
): Promise<void> {
  await printList(
    client,
    {
      field: 'access',
      query: 'query ($repository: String!) { access(repository: $repository) { login role grantedBy grantedAt } }',
      variables: { repository },
      what: 'people with access',
      none: 'penstock: nobody else has access.',
      columns: ['LOGIN', 'ROLE', 'SINCE', 'BY'].map((title) => ({ title })),
      row: (entry) => ['login', 'role', 'grantedAt', 'grantedBy'].map((field) => cellOf(entry, field)),
    },
    args,
    context,
  );
}

async function mine(
  client: ServerClient,
  _name: string,
  args: ParsedArguments,
  context: CommandContext,
): Promise<void> {
  await printList(
    client,
    {
      field: 'sharedRepositories',
      query: 'query { sharedRepositories { provider repository role tenant } }',
      what: 'shared repositories',
      none: 'penstock: nobody lets you into a repository.',
      columns: ['ROLE', 'PROVIDER', 'REPOSITORY'].map((title) => ({ title })),
      row: (entry) => ['role', 'provider', 'repository'].map((field) => cellOf(entry, field)),
    },
    args,
    context,
  );
}

async function grant(
  client: ServerClient,
  repository: string,
  args: ParsedArguments,
  { terminal }: CommandContext,
): Promise<void> {
  const role = args.text('role');
  if (role === undefined) throw new UsageError(`'access grant' needs --role: ${ROLES}`, 'access');
  const entry = await fieldAnswered(
    client,
    'mutation ($repository: String!, $login: String!, $role: String!) { grantAccess(repository: $repository, login: $login, role: $role) { login role grantedBy grantedAt } }',
    { repository, login: loginOf(args, 'grant'), role },
    'grantAccess',
  );
  if (args.flag('json')) terminal.print(`${JSON.stringify(entry)}\n`);
  else
    terminal.note(
      `${cellOf(entry, 'login')} has the role ${cellOf(entry, 'role')} at ${printableText(repository)}, from the next login at the latest.`,
    );
}

async function revoke(
  client: ServerClient,
  repository: string,
  args: ParsedArguments,
  { terminal }: CommandContext,
): Promise<void> {
  const login = loginOf(args, 'revoke');
  const revoked = await fieldAnswered(
    client,
    'mutation ($repository: String!, $login: String!) { revokeAccess(repository: $repository, login: $login) }',
    { repository, login },
    'revokeAccess',
  );
  if (args.flag('json')) terminal.print(`${JSON.stringify({ revoked })}\n`);
  if (revoked !== true)
    throw new ServerRefused(
      `${printableText(login)} has no access to ${printableText(repository)}; see who has: penstock access ls ${printableText(repository)}`,
    );
  if (!args.flag('json'))
    terminal.note(`${printableText(login)} has no access to ${printableText(repository)} any more.`);
}

async function leave(
  client: ServerClient,
  repository: string,
  args: ParsedArguments,
  { terminal }: CommandContext,
): Promise<void> {
  const left = await fieldAnswered(
    client,
    'mutation ($repository: String!) { leaveRepository(repository: $repository) }',
    { repository },
    'leaveRepository',
  );
  if (args.flag('json')) terminal.print(`${JSON.stringify({ left })}\n`);
  if (left !== true)
    throw new ServerRefused(
      `nobody lets you into ${printableText(repository)}; see what others let you do: penstock access mine`,
    );
  if (!args.flag('json')) terminal.note(`You have left ${printableText(repository)}.`);
}

function loginOf(args: ParsedArguments, word: string): string {
  const login = args.text('login');
  if (login === undefined) throw new UsageError(`'access ${word}' needs --login: of whom`, 'access');
  return login;
}
