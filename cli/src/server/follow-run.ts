/** Shows a server's run: its log stream through a reporter, to the end or until the user has seen enough. */
import { endsEventStream, type PublicEvent } from '@penstock/run/public-events';
import type { CommandContext, ParsedArguments } from '../command-line/command.ts';
import { EXIT, OutputClosed } from '../process/errors.ts';
import { JsonReporter } from '../output/json-reporter.ts';
import type { Reporter } from '../output/reporter.ts';
import { COLOR_OPTIONS, colorChoice } from '../command-line/color-options.ts';
import { dieOf } from '../process/interrupts.ts';
import { printableText } from '../output/printable-text.ts';
import { StageReporter } from '../output/stage-reporter.ts';
import type { StageTally } from '../output/stage-tally.ts';
import { wantsColor } from '../output/terminal.ts';
import { TextReporter } from '../output/text-reporter.ts';
import { GateNotes } from './gate-notes.ts';
import { findRun, hasEnded, type RunOnServer } from './graphql.ts';
import { parseJson } from './json.ts';
import type { ServerClient } from './http-client.ts';
import { isPublicEvent } from './public-event.ts';
import { readLogStream, type MessageTaken, type StreamEnd } from './log-stream.ts';
import type { StreamMessage } from './event-stream-parser.ts';
import { TailGate, type HeldEvent } from './tail-gate.ts';

export const FOLLOW_OPTIONS = {
  quiet: { type: 'boolean', short: 'q', text: 'Of the output only the end of each failed stage’s, and the summary.' },
  timestamps: { type: 'boolean', short: 't', text: 'Begin each line with its time in UTC.' },
  json: {
    type: 'boolean',
    text: 'One JSON object a line: the run’s id, then its events (docs/events.md) with statuses as in the API.',
  },
  ...COLOR_OPTIONS,
} as const;

export interface FollowOptions {
  readonly client: ServerClient;
  readonly run: RunOnServer;
  readonly follow: boolean;
  readonly args: ParsedArguments;
  readonly context: CommandContext;
  /** Only these stages, which `run` has; what is asked for is over when all of them are. Absent: the whole run. */
  readonly only?: readonly string[] | undefined;
  /** Of what has been printed so far, only so many lines. Absent: all. */
  readonly tail?: number | undefined;
}

/** Of a run that was just begun: says which it is, and follows it unless `--detach` was given. */
export async function followNewRun(
  options: Pick<FollowOptions, 'client' | 'run' | 'args' | 'context'>,
): Promise<number> {
  const { client, run, args } = options;
  const { terminal } = options.context;
  const { base } = client.server;
  if (args.flag('detach')) {
    terminal.print(
      args.flag('json') ? `${JSON.stringify({ type: 'run', id: run.id, server: base })}\n` : `${run.id}\n`,
    );
    return EXIT.success;
  }
  terminal.note(`Run ${printableText(run.id)} on ${base}`);
  return await followRun({ ...options, follow: true });
}

/** A reporter of either kind: events of a server are passed on to a program as they came. */
type RunReporter = (TextReporter | JsonReporter | StageReporter) & { readonly tally: StageTally };

/** Resolves to the exit code: how the run ended. Leaves the run alone, whatever happens here. */
export async function followRun(options: FollowOptions): Promise<number> {
  const { client, run, context } = options;
  const { terminal } = context;
  // Of a run that has ended the server sends everything, however slowly: a pause in it says nothing.
  const isOver = hasEnded(run.status);
  const follow = options.follow || isOver;
  const reporter = reporterOf(options);
  const gate = new TailGate(options.tail ?? Infinity, {
    show: (held) => show(held, reporter),
    passOver: (event) => reporter.tally.take(event),
  });
  if (options.tail === undefined) gate.open();
  const gates = follow && !isOver ? new GateNotes(client, run.id, (line) => terminal.note(line)) : undefined;
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
      isOver,
      signal: stop.signal,
      onMessage: selection(options.only, gate, gates),
      onCaughtUp: () => {
        if (!isOver) gate.open();
      },
      room: () => terminal.out.room(),
      note: (line) => terminal.note(line),
    });
    gate.open();
    if (terminal.out.isClosed) throw new OutputClosed('the reader has gone');
    if (exitBySignal !== undefined) {
      terminal.note(`penstock: the run goes on without us; penstock logs -f ${run.id} shows it again.`);
      return exitBySignal;
    }
    return await exitCodeOf(end, reporter, options);
  } finally {
    gates?.stop();
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
  }
}

function reporterOf({ client, run, args, context, only }: FollowOptions): RunReporter {
  const { terminal, env } = context;
  const stages = only ?? run.stages;
  const timestamps = args.flag('timestamps');
  const color = wantsColor(colorChoice(args), env, terminal.outIsTerminal);
  if (args.flag('json')) return new JsonReporter(terminal.out, stages, { id: run.id, server: client.server.base });
  const [stage] = only ?? [];
  if (stage !== undefined && only?.length === 1) return new StageReporter({ terminal, stage, timestamps, color });
  return new TextReporter({
    out: terminal.out,
    stages,
    color,
    quiet: args.flag('quiet'),
    tame: terminal.outIsTerminal,
    columns: terminal.columns(env),
    timestamps,
  });
}

/** Hands on what is asked for: events that a newer server may send and this command does not know are passed over. */
function selection(
  only: readonly string[] | undefined,
  gate: TailGate,
  gates: GateNotes | undefined,
): (message: StreamMessage) => MessageTaken {
  // Of a matrix there may be thousands, and of its lines a million.
  const open = new Set(only);
  const chosen = new Set(only);
  const isChosen = (event: PublicEvent): boolean =>
    only === undefined || !('stage' in event) || chosen.has(event.stage);
  return ({ data }) => {
    const event = parseJson(data);
    if (!isPublicEvent(event)) return PASSED_OVER;
    gates?.happened(event);
    if (isChosen(event)) gate.take({ event, text: data });
    if (event.type === 'stage_completed' || event.type === 'stage_skipped') open.delete(event.stage);
    const isLast = endsEventStream(event) || (only !== undefined && open.size === 0);
    return { isLast, atMs: Date.parse(event.timestamp) };
  };
}

function show({ event, text }: HeldEvent, reporter: RunReporter): void {
  if (reporter instanceof JsonReporter) reporter.raw(text, event);
  else if (event.type !== 'stage_log') reporter.event(event);
  else
    void (reporter as Reporter).lines(
      event.stage,
      event.stream,
      // `room` slows the reading, once for all lines that came together.
      Buffer.from(`${event.line.replaceAll('\n', ' ')}\n`),
      Date.parse(event.timestamp),
    );
}

const PASSED_OVER: MessageTaken = { isLast: false, atMs: Number.NaN };

async function exitCodeOf(
  end: StreamEnd,
  reporter: RunReporter,
  { client, run, only, follow, context }: FollowOptions,
): Promise<number> {
  const { tally } = reporter;
  if (end === 'caught-up') {
    if (!follow) context.terminal.note(`penstock: the run goes on; 'penstock logs -f ${run.id}' follows it.`);
    return EXIT.success;
  }
  if (only !== undefined) {
    if (only.length === 1) reporter.finish();
    const hasFailed = tally.rows.some(({ status }) => status === 'FAILED' || status === 'CANCELLED');
    return hasFailed ? EXIT.failure : EXIT.success;
  }
  if (end === 'ended') reporter.finish();
  const status = end === 'ended' ? tally.runStatus : (await findRun(client, run.id))?.status;
  return status === 'SUCCESS' || status === 'SKIPPED' ? EXIT.success : EXIT.failure;
}
