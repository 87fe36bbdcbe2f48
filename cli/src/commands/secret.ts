import type { Command, CommandContext, ParsedArguments } from '../command-line/command.ts';
import { readSecretValue } from '../command-line/secret-value.ts';
import { EXIT, ServerRefused, ServerUnreached } from '../process/errors.ts';
import { printableText } from '../output/printable-text.ts';
import { cellOf } from '../server/answered-cell.ts';
import { tableLines } from '../output/table.ts';
import { fieldAnswered } from '../server/graphql.ts';
import type { ServerClient } from '../server/http-client.ts';
import { runNamedAction, type NamedActions } from '../server/named-actions.ts';
import { SERVER_ENVIRONMENT, SERVER_EXIT_CODES, SERVER_OPTIONS } from '../server/server-options.ts';

const ACTIONS: NamedActions = {
  set: { takesName: true, act: set },
  ls: { takesName: false, act: list },
  rm: { takesName: true, act: remove },
};

const COLUMNS = ['NAME', 'REPOSITORY', 'PIPELINE', 'REFS', 'UPDATED', 'LAST USED'].map((title) => ({ title }));
const FIELDS = 'name repository pipeline refs createdAt updatedAt lastUsedAt';

export const secretCommand: Command = {
  spec: {
    name: 'secret',
    usage: 'set <NAME> | ls | rm <NAME>',
    about:
      'The secrets of stages on a server: `set` keeps a value, from standard input or asked for without being shown, `ls` shows what there is, `rm` removes one. ' +
      'No value is ever given back. A stage gets those that it names under `secrets`. There is no option for the value itself: others could read it in the list of processes.',
    options: {
      repository: {
        type: 'string',
        value: 'REPOSITORY',
        text: 'For runs of this repository alone: the provider and the path, such as git_host_a/acme/shop. With the API key this or --pipeline is required.',
      },
      pipeline: { type: 'string', value: 'NAME', text: 'For runs of pipelines of this name alone.' },
      ref: {
        type: 'string',
        value: 'GLOB',
        text: 'For runs at matching refs alone, several times if need be: main, or refs/tags/v*.',
      },
      json: { type: 'boolean', text: 'The answer as JSON, on one line.' },
      ...SERVER_OPTIONS,
    },
    positionals: {
      min: 1,
      max: 2,
      missing: 'what about secrets? penstock secret set <NAME>, penstock secret ls, penstock secret rm <NAME>',
    },
    environment: SERVER_ENVIRONMENT,
    examples: [
      ['penstock secret set NPM_TOKEN', 'asks for the value'],
      ['penstock secret set DEPLOY_KEY --repository git_host_a/acme/shop --ref main < key.pem', 'for one branch'],
      ['penstock secret ls', 'names, and when each was last used'],
    ],
    exitCodes: [[EXIT.success, 'done'], [EXIT.usage, 'wrong usage, or no value'], ...SERVER_EXIT_CODES],
  },
  run: (args, context) =>
    runNamedAction('secret', { actions: ACTIONS, names: 'the name of the secret' }, args, context),
};

async function set(
  client: ServerClient,
  name: string,
  args: ParsedArguments,
  { terminal }: CommandContext,
): Promise<void> {
  const value = await readSecretValue(process.stdin, terminal, printableText(name));
  const refs = args.texts('ref');
  const info = await fieldAnswered(
    client,
    `mutation ($name: String!, $value: String!, $repository: String, $pipeline: String, $refs: [String!]) {
      setSecret(name: $name, value: $value, repository: $repository, pipeline: $pipeline, refs: $refs) { ${FIELDS} } }`,
    { name, value, ...scopeOf(args), ...(refs.length === 0 ? {} : { refs }) },
    'setSecret',
  );
  if (args.flag('json')) terminal.print(`${JSON.stringify(info)}\n`);
  else terminal.note(`The secret ${printableText(name)} is set.`);
}

async function list(
  client: ServerClient,
  _name: string,
  args: ParsedArguments,
  { terminal }: CommandContext,
): Promise<void> {
  const query = `query ($repository: String) { secrets(repository: $repository) { ${FIELDS} } }`;
  const { repository } = scopeOf(args);
  const secrets = await fieldAnswered(client, query, { repository }, 'secrets');
  if (!Array.isArray(secrets))
    throw new ServerUnreached(`${client.server.base} lists no secrets: is it a Penstock server?`);
  if (args.flag('json')) {
    terminal.print(`${JSON.stringify(secrets)}\n`);
    return;
  }
  const rows = secrets.map((entry) =>
    ['name', 'repository', 'pipeline', 'refs', 'updatedAt', 'lastUsedAt'].map((field) => cellOf(entry, field)),
  );
  for (const line of tableLines(COLUMNS, rows)) terminal.print(`${line}\n`);
}

async function remove(
  client: ServerClient,
  name: string,
  args: ParsedArguments,
  { terminal }: CommandContext,
): Promise<void> {
  const deleted = await fieldAnswered(
    client,
    'mutation ($name: String!, $repository: String, $pipeline: String) { deleteSecret(name: $name, repository: $repository, pipeline: $pipeline) }',
    { name, ...scopeOf(args) },
    'deleteSecret',
  );
  if (args.flag('json')) terminal.print(`${JSON.stringify({ deleted })}\n`);
  if (deleted !== true)
    throw new ServerRefused(
      `there is no secret ${printableText(name)} of this repository and pipeline; see what there is: penstock secret ls`,
    );
  if (!args.flag('json')) terminal.note(`The secret ${printableText(name)} is removed.`);
}

function scopeOf(args: ParsedArguments): { readonly repository?: string; readonly pipeline?: string } {
  const [repository, pipeline] = [args.text('repository'), args.text('pipeline')];
  return { ...(repository === undefined ? {} : { repository }), ...(pipeline === undefined ? {} : { pipeline }) };
}
