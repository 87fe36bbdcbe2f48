/** Shows a server's run: its log stream through a reporter, to the end or until the user has seen enough. */
import { endsEventStream, isPublicEventType, type PublicEvent } from '@penstock/run/public-events';
import type { CommandContext, ParsedArguments } from '../command-line/command.ts';
import { EXIT, OutputClosed } from '../process/errors.ts';
import { JsonReporter } from '../output/json-reporter.ts';
import type { Reporter } from '../output/reporter.ts';
import { COLOR_OPTIONS, colorChoice } from '../command-line/color-options.ts';
import { dieOf } from '../process/interrupts.ts';
import { wantsColor } from '../output/terminal.ts';
import { TextReporter } from '../output/text-reporter.ts';
import { findRun, type RunOnServer } from './graphql.ts';
import { fieldOf, parseJson } from './json.ts';
import type { ServerClient } from './http-client.ts';
import { readLogStream, type MessageTaken, type StreamEnd } from './log-stream.ts';
import type { StreamMessage } from './event-stream-parser.ts';

export const FOLLOW_OPTIONS = {
  quiet: { type: 'boolean', short: 'q', text: 'Of the output only the end of each failed stage’s, and the summary.' },
  json: { type: 'boolean', text: 'One JSON event a line, as the server sends them.' },
  ...COLOR_OPTIONS,
} as const;

export interface FollowOptions {
  readonly client: ServerClient;
  readonly run: RunOnServer;
  readonly follow: boolean;
  readonly args: ParsedArguments;
  readonly context: CommandContext;
}

/** Resolves to the exit code: how the run ended. Leaves the run alone, whatever happens here. */
export async function followRun({ client, run, follow, args, context }: FollowOptions): Promise<number> {
  const { terminal, env } = context;
  const json = args.flag('json');
  const reporter = json
    ? new JsonReporter(terminal.out, run.stages)
    : new TextReporter({
        out: terminal.out,
        stages: run.stages,
        color: wantsColor(colorChoice(args), env, terminal.outIsTerminal),
        quiet: args.flag('quiet'),
        tame: terminal.outIsTerminal,
      });
  const stop = new AbortController();
  let exitBySignal: number | undefined;
  const onSignal = (signal: NodeJS.Signals): void => {
    // A second one does not wait for a terminal that takes no more output.
    if (exitBySignal !== undefined) dieOf(signal);
    exitBySignal = signal === 'SIGINT' ? EXIT.interrupted : EXIT.terminated;
    stop.abort();
  };
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  void terminal.out.closed.then(() => stop.abort());
  try {
    const end = await readLogStream({
      client,
      runId: run.id,
      follow,
      signal: stop.signal,
      onMessage: (message) => (json ? passOn(message, reporter as JsonReporter) : show(message, reporter)),
      room: () => terminal.out.room(),
      note: (line) => terminal.note(line),
    });
    if (terminal.out.isClosed) throw new OutputClosed('the reader has gone');
    if (exitBySignal !== undefined) {
      terminal.note(`penstock: the run goes on without us; penstock logs ${run.id} shows it again.`);
      return exitBySignal;
    }
    return await exitCodeOf(end, reporter, client, run.id);
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
  }
}

/** Prints the event as the server sent it, so that no field is lost that this command does not know. */
function passOn(message: StreamMessage, reporter: JsonReporter): MessageTaken {
  const event = parseJson(message.data);
  if (!isPublicEvent(event)) return PASSED_OVER;
  reporter.raw(message.data, event);
  return { isLast: endsEventStream(event), atMs: Date.parse(event.timestamp) };
}

function show(message: StreamMessage, reporter: Reporter): MessageTaken {
  const event = parseJson(message.data);
  if (!isPublicEvent(event)) return PASSED_OVER;
  const atMs = Date.parse(event.timestamp);
  if (event.type !== 'stage_log') reporter.event(event);
  // `room` slows the reading, once for all lines that came together.
  else void reporter.lines(event.stage, event.stream, Buffer.from(`${event.line.replaceAll('\n', ' ')}\n`), atMs);
  return { isLast: endsEventStream(event), atMs };
}

const PASSED_OVER: MessageTaken = { isLast: false, atMs: Number.NaN };

/** Events that a newer server may send and this command does not know are passed over. */
function isPublicEvent(event: unknown): event is PublicEvent {
  const type = fieldOf(event, 'type');
  if (typeof type !== 'string' || !isPublicEventType(type) || typeof fieldOf(event, 'timestamp') !== 'string')
    return false;
  if (type.startsWith('stage_') && typeof fieldOf(event, 'stage') !== 'string') return false;
  return type !== 'stage_log' || typeof fieldOf(event, 'line') === 'string';
}

async function exitCodeOf(
  end: StreamEnd,
  reporter: TextReporter | JsonReporter,
  client: ServerClient,
  runId: string,
): Promise<number> {
  if (end === 'ended') {
    reporter.finish();
    return reporter.tally.runStatus === 'SUCCESS' || reporter.tally.runStatus === 'SKIPPED'
      ? EXIT.success
      : EXIT.failure;
  }
  if (end === 'caught-up') return EXIT.success;
  const run = await findRun(client, runId);
  return run?.status === 'SUCCESS' || run?.status === 'SKIPPED' ? EXIT.success : EXIT.failure;
}
