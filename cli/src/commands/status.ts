import { COLOR_OPTIONS, colorChoice } from '../command-line/color-options.ts';
import type { Command, CommandContext, ParsedArguments } from '../command-line/command.ts';
import { painter } from '../output/painter.ts';
import { LivePage } from '../output/live-page.ts';
import { runPage } from '../output/run-page.ts';
import { wantsColor } from '../output/terminal.ts';
import { EXIT } from '../process/errors.ts';
import { serverClient } from '../server/http-client.ts';
import { readCredentials } from '../server/read-credentials.ts';
import { runIdOf } from '../server/run-id.ts';
import { showRun } from '../server/runs.ts';
import type { ShownRun } from '../output/shown-run.ts';
import { serverAddress } from '../server/server-address.ts';
import { SERVER_ENVIRONMENT, SERVER_EXIT_CODES, SERVER_OPTIONS } from '../server/server-options.ts';
import { watchRun } from '../server/watch-run.ts';

export const statusCommand: Command = {
  spec: {
    name: 'status',
    usage: '[options] <run>',
    about:
      'Shows how a run on a server stands: its stages as a graph, each below the one that it comes after. With `--watch` the page is kept up to date until the run has ended; ' +
      'where no terminal reads, each change is printed as a page of its own.',
    options: {
      watch: { type: 'boolean', short: 'w', text: 'Keep the page up to date until the run has ended.' },
      json: { type: 'boolean', text: 'The run as JSON on one line; with --watch a line for each change.' },
      ...COLOR_OPTIONS,
      ...SERVER_OPTIONS,
    },
    positionals: { min: 1, max: 1, missing: 'the status of which run? Give its id: penstock status <run>' },
    environment: SERVER_ENVIRONMENT,
    examples: [
      ['penstock status 0192f0c1-2b3c-7abc-8def-0123456789ab', 'the graph as it stands'],
      ['penstock status --watch 0192f0c1-…', 'live'],
      ['penstock status --json 0192f0c1-… | jq -r .status', 'one word, for a program'],
    ],
    exitCodes: [
      [EXIT.success, 'the run has not failed so far'],
      [EXIT.failure, 'it ended FAILED or CANCELLED'],
      [EXIT.usage, 'wrong usage'],
      ...SERVER_EXIT_CODES,
      [EXIT.interrupted, 'stopped watching after ^C; the run goes on'],
    ],
  },
  run: status,
};

async function status(args: ParsedArguments, context: CommandContext): Promise<number> {
  const id = runIdOf(args, 'status');
  const server = serverAddress(args.text('server'), context.env);
  const client = serverClient(server, await readCredentials(args, context, server));
  const show = pageWriter(args, context);
  const read = async (): Promise<ShownRun> => await showRun(client, id);
  if (args.flag('watch')) return await watchRun({ read, show, terminal: context.terminal, id });
  const run = await read();
  show(run, true);
  return run.status === 'FAILED' || run.status === 'CANCELLED' ? EXIT.failure : EXIT.success;
}

function pageWriter(
  args: ParsedArguments,
  { env, terminal }: CommandContext,
): (run: ShownRun, isLast: boolean) => void {
  if (args.flag('json')) {
    let last = '';
    return (run) => {
      const line = `${JSON.stringify(run)}\n`;
      if (line !== last) terminal.print(line);
      last = line;
    };
  }
  const paint = painter(wantsColor(colorChoice(args), env, terminal.outIsTerminal));
  const page = new LivePage(terminal);
  return (run, isLast) => {
    const columns = terminal.columns(env);
    const rows = isLast ? undefined : terminal.rows();
    page.show(runPage(run, Date.now(), paint, { columns, rows }), stateOf(run));
  };
}

/** What is a change where nothing can be drawn over: not the time that goes by. */
function stateOf(run: ShownRun): string {
  return JSON.stringify([run.status, run.stages.map(({ status: stageStatus, attempt }) => [stageStatus, attempt])]);
}
