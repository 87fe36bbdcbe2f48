import type { Command, CommandContext, ParsedArguments } from '../command-line/command.ts';
import { printableText } from '../output/printable-text.ts';
import { EXIT, ServerRefused } from '../process/errors.ts';
import { cellOf } from '../server/answered-cell.ts';
import { fieldAnswered } from '../server/graphql.ts';
import type { ServerClient } from '../server/http-client.ts';
import { fieldOf } from '../server/json.ts';
import { printList, type Listing } from '../server/list-action.ts';
import { runNamedAction, type NamedActions } from '../server/named-actions.ts';
import { SERVER_ENVIRONMENT, SERVER_EXIT_CODES, SERVER_OPTIONS } from '../server/server-options.ts';

const ACTIONS: NamedActions = {
  create: { takesName: true, names: 'the address to tell', act: create },
  ls: { takesName: false, act: list },
  rm: { takesName: true, act: remove },
  deliveries: { takesName: true, act: deliveries },
  redeliver: { takesName: true, names: 'the id of a delivery', act: redeliver },
};

const EVENTS = ['run.started', 'run.completed', 'stage.completed', 'approval.requested'];
const HOOK_FIELDS = 'id url events repository createdAt active failingSince lastError';
const DELIVERY_FIELDS =
  'id event runId version status attempts createdAt attemptedAt nextAttemptAt responseStatus responseMs error';
const HOOK_COLUMNS = ['STATE', 'EVENTS', 'REPOSITORY', 'URL', 'ID'].map((title) => ({ title }));
const DELIVERY_COLUMNS = ['STATE', 'EVENT', 'RUN', 'ANSWER', 'LAST ATTEMPT', 'ID'].map((title) => ({ title }));

export const hookCommand: Command = {
  spec: {
    name: 'hook',
    usage: 'create <URL> | ls | rm <ID> | deliveries <ID> | redeliver <DELIVERY>',
    about:
      'Webhooks that tell an address of your runs on a server: `create` makes one and prints the secret that its deliveries are signed with, once; `ls` shows ' +
      'them and whether they are taken, `rm` removes one; `deliveries` shows what one was sent and how it was answered, `redeliver` sends one of these again.',
    options: {
      event: {
        type: 'string',
        value: 'EVENT',
        text: `What to tell, several times if need be: ${EVENTS.join(', ')}. Default: all of them.`,
      },
      repository: {
        type: 'string',
        value: 'REPOSITORY',
        text: 'Only of runs of this repository: the provider and the path, such as git_host_a/acme/shop.',
      },
      json: { type: 'boolean', text: 'The answer as JSON, on one line.' },
      ...SERVER_OPTIONS,
    },
    positionals: {
      min: 1,
      max: 2,
      missing:
        'what about webhooks? penstock hook create <URL>, penstock hook ls, penstock hook rm <ID>, penstock hook deliveries <ID>, penstock hook redeliver <DELIVERY>',
    },
    environment: SERVER_ENVIRONMENT,
    examples: [
      ['penstock hook create https://chat.example/penstock --event run.completed', 'prints its secret'],
      ['penstock hook deliveries 3f9a…', 'what it was sent, by the id that ls shows'],
      ['penstock hook redeliver 3f9a…_0192…_000000001', 'one of these again'],
    ],
    exitCodes: [[EXIT.success, 'done'], [EXIT.usage, 'wrong usage'], ...SERVER_EXIT_CODES],
  },
  run: (args, context) => runNamedAction('hook', { actions: ACTIONS, names: 'the id of a webhook' }, args, context),
};

async function create(
  client: ServerClient,
  url: string,
  args: ParsedArguments,
  { terminal }: CommandContext,
): Promise<void> {
  const query = `mutation ($url: String!, $events: [String!], $repository: String) {
    createHook(url: $url, events: $events, repository: $repository) { id url events repository createdAt secret }
  }`;
  const named = args.texts('event');
  const variables = { url, events: named.length === 0 ? EVENTS : named, repository: args.text('repository') };
  const hook = await fieldAnswered(client, query, variables, 'createHook');
  if (args.flag('json')) terminal.print(`${JSON.stringify(hook)}\n`);
  else {
    terminal.note(`The webhook ${cellOf(hook, 'id')} tells ${cellOf(hook, 'url')}. Its secret is shown this once:`);
    terminal.print(`${cellOf(hook, 'secret')}\n`);
  }
}

async function list(client: ServerClient, _id: string, args: ParsedArguments, context: CommandContext): Promise<void> {
  const listing: Listing = {
    field: 'hooks',
    query: `query { hooks { ${HOOK_FIELDS} } }`,
    what: 'webhooks',
    none: 'penstock: there are no webhooks.',
    columns: HOOK_COLUMNS,
    row: (hook) => [
      stateOf(hook),
      cellOf(hook, 'events'),
      cellOf(hook, 'repository'),
      cellOf(hook, 'url'),
      cellOf(hook, 'id'),
    ],
  };
  for (const hook of await printList(client, listing, args, context))
    if (typeof fieldOf(hook, 'lastError') === 'string') context.terminal.note(troubleOf(hook));
}

async function remove(
  client: ServerClient,
  id: string,
  args: ParsedArguments,
  { terminal }: CommandContext,
): Promise<void> {
  const query = 'mutation ($id: String!) { deleteHook(id: $id) }';
  const deleted = await fieldAnswered(client, query, { id }, 'deleteHook');
  if (args.flag('json')) terminal.print(`${JSON.stringify({ deleted })}\n`);
  if (deleted !== true)
    throw new ServerRefused(`there is no webhook ${printableText(id)}; see what there is: penstock hook ls`);
  if (!args.flag('json')) terminal.note(`The webhook ${printableText(id)} is removed.`);
}

async function deliveries(
  client: ServerClient,
  id: string,
  args: ParsedArguments,
  context: CommandContext,
): Promise<void> {
  const listing: Listing = {
    field: 'hookDeliveries',
    query: `query ($id: String!) { hookDeliveries(id: $id, limit: 100) { ${DELIVERY_FIELDS} } }`,
    variables: { id },
    what: 'deliveries',
    none: 'penstock: nothing was to be sent yet.',
    columns: DELIVERY_COLUMNS,
    row: (delivery) => [
      cellOf(delivery, 'status').toLowerCase(),
      cellOf(delivery, 'event'),
      cellOf(delivery, 'runId'),
      answerOf(delivery),
      secondOf(cellOf(delivery, 'attemptedAt')),
      cellOf(delivery, 'id'),
    ],
  };
  await printList(client, listing, args, context);
}

async function redeliver(
  client: ServerClient,
  id: string,
  args: ParsedArguments,
  { terminal }: CommandContext,
): Promise<void> {
  const query = `mutation ($id: String!) { redeliverHook(id: $id) { ${DELIVERY_FIELDS} } }`;
  const delivery = await fieldAnswered(client, query, { id }, 'redeliverHook');
  if (args.flag('json')) terminal.print(`${JSON.stringify(delivery)}\n`);
  else terminal.note(`${cellOf(delivery, 'event')} of run ${cellOf(delivery, 'runId')} is sent again.`);
}

function stateOf(hook: unknown): string {
  if (fieldOf(hook, 'active') !== true) return 'off';
  return fieldOf(hook, 'failingSince') === null ? 'on' : 'failing';
}

function troubleOf(hook: unknown): string {
  const since = secondOf(cellOf(hook, 'failingSince'));
  const remedy =
    fieldOf(hook, 'active') === true
      ? 'it is tried again'
      : 'it is switched off: mend the receiver, then `penstock hook redeliver` one of its deliveries';
  return `${cellOf(hook, 'id')}: nothing is taken since ${since}: ${cellOf(hook, 'lastError')}; ${remedy}.`;
}

function answerOf(delivery: unknown): string {
  const status = fieldOf(delivery, 'responseStatus');
  return typeof status === 'number' ? String(status) : cellOf(delivery, 'error');
}

function secondOf(time: string): string {
  return time.replace('T', ' ').replace(/\.\d+Z$/, 'Z');
}
