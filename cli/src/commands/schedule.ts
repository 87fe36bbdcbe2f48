import type { Command, CommandContext, ParsedArguments } from '../command-line/command.ts';
import { cellOf } from '../server/answered-cell.ts';
import { cutMiddle } from '../output/printable-text.ts';
import { EXIT } from '../process/errors.ts';
import { fieldAnswered } from '../server/graphql.ts';
import type { ServerClient } from '../server/http-client.ts';
import { fieldOf } from '../server/json.ts';
import { printList, type Listing } from '../server/list-action.ts';
import { runNamedAction, type NamedAction, type NamedActions } from '../server/named-actions.ts';
import { SERVER_ENVIRONMENT, SERVER_EXIT_CODES, SERVER_OPTIONS } from '../server/server-options.ts';

const ACTIONS: NamedActions = {
  ls: { takesName: false, act: list },
  pause: { takesName: true, act: changed('pauseSchedule') },
  resume: { takesName: true, act: changed('resumeSchedule') },
};

const FIELDS = 'id provider repository cron inputs { key value } nextAt lastRunId paused';
/** Two lines of one time differ in their inputs alone. */
const COLUMNS = ['CRON (UTC)', 'REPOSITORY', 'INPUTS', 'NEXT', 'LAST RUN', 'ID'].map((title) => ({ title }));

const INPUTS_CELLS_MAX = 40;

export const scheduleCommand: Command = {
  spec: {
    name: 'schedule',
    usage: 'ls | pause <ID> | resume <ID>',
    about:
      'What a server starts by itself, by the `schedule` of your repositories: `ls` shows the lines and when each starts its next run, `pause` keeps one from ' +
      'starting anything, `resume` lets it go on with its next time.',
    options: {
      json: { type: 'boolean', text: 'The answer as JSON, on one line.' },
      ...SERVER_OPTIONS,
    },
    positionals: {
      min: 1,
      max: 2,
      missing:
        'what about schedules? penstock schedule ls, penstock schedule pause <ID>, penstock schedule resume <ID>',
    },
    environment: SERVER_ENVIRONMENT,
    examples: [
      ['penstock schedule ls', 'what is started when'],
      ['penstock schedule pause 00000000-…', 'one of them, by the id that ls shows'],
    ],
    exitCodes: [[EXIT.success, 'done'], [EXIT.usage, 'wrong usage'], ...SERVER_EXIT_CODES],
  },
  run: (args, context) =>
    runNamedAction('schedule', { actions: ACTIONS, names: 'the id of a schedule' }, args, context),
};

async function list(client: ServerClient, _id: string, args: ParsedArguments, context: CommandContext): Promise<void> {
  const listing: Listing = {
    field: 'schedules',
    query: `query { schedules { ${FIELDS} } }`,
    what: 'schedules',
    none: 'penstock: nothing is started by a schedule.',
    columns: COLUMNS,
    row: (entry) => [
      cellOf(entry, 'cron'),
      cellOf(entry, 'repository'),
      inputsCell(entry),
      fieldOf(entry, 'paused') === true ? 'paused' : minuteOf(cellOf(entry, 'nextAt')),
      cellOf(entry, 'lastRunId'),
      cellOf(entry, 'id'),
    ],
  };
  await printList(client, listing, args, context);
}

function changed(mutation: 'pauseSchedule' | 'resumeSchedule'): NamedAction {
  return async (client, id, args, { terminal }) => {
    const query = `mutation ($id: String!) { ${mutation}(id: $id) { ${FIELDS} } }`;
    const line = await fieldAnswered(client, query, { id }, mutation);
    if (args.flag('json')) terminal.print(`${JSON.stringify(line)}\n`);
    else {
      const inputs = inputsOf(line);
      const named = `'${cellOf(line, 'cron')}' of ${cellOf(line, 'repository')}${inputs === '' ? '' : ` (${inputs})`}`;
      const next = minuteOf(cellOf(line, 'nextAt'));
      terminal.note(
        fieldOf(line, 'paused') === true ? `${named} is paused.` : `${named} starts its next run at ${next}.`,
      );
    }
  };
}

function inputsOf(entry: unknown): string {
  const inputs = fieldOf(entry, 'inputs');
  if (!Array.isArray(inputs)) return '';
  return inputs.map((input) => `${cellOf(input, 'key')}=${cellOf(input, 'value')}`).join(' ');
}

function inputsCell(entry: unknown): string {
  const inputs = inputsOf(entry);
  return inputs === '' ? '-' : cutMiddle(inputs, INPUTS_CELLS_MAX);
}

function minuteOf(time: string): string {
  return time.replace('T', ' ').replace(/:\d\d\.\d+Z$/, 'Z');
}
