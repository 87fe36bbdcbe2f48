import { wholeNumber } from '../command-line/arguments.ts';
import { COLOR_OPTIONS, colorChoice } from '../command-line/color-options.ts';
import type { Command, CommandContext, CommandSpec, ParsedArguments } from '../command-line/command.ts';
import { nearestWord } from '../command-line/nearest.ts';
import { painter, type Painter } from '../output/painter.ts';
import { cellsOf, fitText, printableText } from '../output/printable-text.ts';
import { durationText } from '../output/stage-tally.ts';
import { RUN_STATUSES, statusColor } from '../output/status-colors.ts';
import { tableLines } from '../output/table.ts';
import { wantsColor } from '../output/terminal.ts';
import { EXIT, UsageError } from '../process/errors.ts';
import { serverClient } from '../server/http-client.ts';
import { readCredentials } from '../server/read-credentials.ts';
import { listRuns, type RunFilters } from '../server/runs.ts';
import type { ListedRun } from '../output/shown-run.ts';
import { serverAddress } from '../server/server-address.ts';
import { SERVER_ENVIRONMENT, SERVER_EXIT_CODES, SERVER_OPTIONS } from '../server/server-options.ts';

const LIMIT = { default: 20, max: 1000 } as const;

const spec: CommandSpec = {
  name: 'runs',
  usage: '[options]',
  about:
    'Lists the runs on a server that you may see, the newest first. The filters are the server’s, so that a page is full of what was asked for; ' +
    '`--before` goes on where a list has ended.',
  options: {
    pipeline: { type: 'string', short: 'p', value: 'NAME', text: 'Only runs of the pipeline of this name.' },
    status: { type: 'string', value: 'STATUS', text: `Only runs with this status: ${RUN_STATUSES.join(', ')}.` },
    repository: { type: 'string', value: 'REPOSITORY', text: 'Only runs of this repository.' },
    ref: { type: 'string', value: 'REF', text: 'Only runs of this branch, tag or full ref.' },
    before: { type: 'string', value: 'RUN', text: 'Only runs older than this one.' },
    limit: {
      type: 'string',
      short: 'n',
      value: 'N',
      text: `At most so many, 1 to ${LIMIT.max}; default ${LIMIT.default}.`,
    },
    json: { type: 'boolean', text: 'One JSON object a run and line, with the fields of the API.' },
    ...COLOR_OPTIONS,
    ...SERVER_OPTIONS,
  },
  positionals: { min: 0, max: 0, missing: '' },
  environment: SERVER_ENVIRONMENT,
  examples: [
    ['penstock runs', 'the newest twenty'],
    ['penstock runs --pipeline release --status failed -n 1', 'the last release that failed'],
    ['penstock runs --status running --json | jq -r .id', 'the ids of what runs, for a program'],
  ],
  exitCodes: [[EXIT.success, 'shown, also where there is none'], [EXIT.usage, 'wrong usage'], ...SERVER_EXIT_CODES],
};

export const runsCommand: Command = { spec, run: runs };

async function runs(args: ParsedArguments, context: CommandContext): Promise<number> {
  const { env, terminal } = context;
  const filters = filtersOf(args);
  const given = args.text('limit');
  const limit = given === undefined ? LIMIT.default : wholeNumber(spec, 'limit', given, { min: 1, max: LIMIT.max });
  const server = serverAddress(args.text('server'), env);
  const found = await listRuns(serverClient(server, await readCredentials(args, context, server)), filters, limit);
  if (args.flag('json')) terminal.print(found.map((run) => `${JSON.stringify(run)}\n`).join(''));
  else if (found.length === 0)
    terminal.note(
      Object.keys(filters).length === 0
        ? `There are no runs on ${server.base} that you may see; 'penstock trigger' starts one.`
        : `There is no such run on ${server.base} that you may see.`,
    );
  else {
    const paint = painter(wantsColor(colorChoice(args), env, terminal.outIsTerminal));
    terminal.print(`${runLines(found, paint, terminal.columns(env), Date.now()).join('\n')}\n`);
  }
  return EXIT.success;
}

function filtersOf(args: ParsedArguments): RunFilters {
  const status = args.text('status');
  const given = {
    pipelineName: args.text('pipeline'),
    status: status === undefined ? undefined : statusNamed(status),
    repository: args.text('repository'),
    ref: args.text('ref'),
    before: args.text('before'),
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

function statusNamed(text: string): string {
  const name = text.toUpperCase();
  if (RUN_STATUSES.some((status) => status === name)) return name;
  const close = nearestWord(name, RUN_STATUSES);
  throw new UsageError(
    `there is no status '${printableText(text)}'; ${close === undefined ? `a run is ${RUN_STATUSES.join(', ')}` : `did you mean ${close}?`}`,
    'runs',
  );
}

const COLUMNS = [
  { title: 'RUN' },
  { title: 'STATUS' },
  { title: 'STARTED' },
  { title: 'TIME', isRight: true },
  { title: 'PIPELINE' },
  { title: 'REF' },
];
const STATUS_COLUMN = 1;

function runLines(found: readonly ListedRun[], paint: Painter, columns = Infinity, nowMs: number): string[] {
  const rows = found.map((run) => [
    run.id,
    run.status,
    startOf(run),
    tookOf(run, nowMs),
    printableText(run.pipelineName),
    refOf(run),
  ]);
  const paintCell = (cell: string, column: number, row: number | undefined): string => {
    if (row === undefined) return paint('bold', cell);
    return column === STATUS_COLUMN ? paint(statusColor(found[row]?.status ?? ''), cell) : cell;
  };
  for (const count of [COLUMNS.length, COLUMNS.length - 1]) {
    const shown = rows.map((row) => row.slice(0, count));
    const isWithin = tableLines(COLUMNS.slice(0, count), shown).every((line) => cellsOf(line) <= columns);
    if (isWithin) return tableLines(COLUMNS.slice(0, count), shown, paintCell);
  }
  return found.flatMap((run) => [
    run.id,
    `  ${paint(statusColor(run.status), run.status)} ${fitText(`${tookOf(run, nowMs)}, ${printableText(run.pipelineName)}`, Math.max(8, columns - run.status.length - 3)).trimEnd()}`,
  ]);
}

/** To the second, in UTC: `2026-11-22 06:47:05Z`. */
function startOf({ startedAt }: ListedRun): string {
  return printableText(startedAt.replace('T', ' ').replace(/\.\d+Z$/u, 'Z'));
}

function tookOf({ startedAt, finishedAt }: ListedRun, nowMs: number): string {
  return durationText((finishedAt === null ? nowMs : Date.parse(finishedAt)) - Date.parse(startedAt));
}

function refOf({ ref }: ListedRun): string {
  return printableText((ref ?? '').replace(/^refs\/(heads|tags)\//u, ''));
}
