/** Shows one stage alone: on standard output nothing but its own lines, so that they can be piped; what became of it is a note. */
import type { LogStreamName, PublicRunEvent } from '@penstock/run/public-events';
import { isoTimer } from './iso-time.ts';
import { RESET } from './painter.ts';
import { printableText } from './printable-text.ts';
import type { Reporter } from './reporter.ts';
import { durationText, reasonText, StageTally } from './stage-tally.ts';
import { tameLines } from './tame-lines.ts';
import type { Terminal } from './terminal.ts';

export interface StageReporterOptions {
  readonly terminal: Terminal;
  readonly stage: string;
  readonly timestamps: boolean;
  /** Of a terminal: whether the stage’s colours are shown. */
  readonly color: boolean;
}

export class StageReporter implements Reporter {
  readonly tally: StageTally;
  readonly #options: StageReporterOptions;
  readonly #isoTime = isoTimer();

  constructor(options: StageReporterOptions) {
    this.#options = options;
    this.tally = new StageTally([options.stage]);
  }

  event(event: PublicRunEvent): void {
    this.tally.take(event);
    const { terminal, stage } = this.#options;
    if (event.type === 'stage_retrying')
      terminal.note(
        `${printableText(stage)}: attempt ${event.attempt} failed (${printableText(reasonText(event.reason, event.exitCode))}), trying again`,
      );
  }

  lines(_stage: string, _stream: LogStreamName, bytes: Buffer, timestampMs: number): void {
    const { terminal, timestamps, color } = this.#options;
    if (timestamps) terminal.out.append(Buffer.from(`${this.#isoTime(timestampMs)} `));
    terminal.out.append(terminal.outIsTerminal ? tameLines(bytes, { color }) : bytes);
  }

  finish(): void {
    const { terminal, stage, color } = this.#options;
    // What its last line has switched on ends with it: it may have hidden what follows.
    if (terminal.outIsTerminal && color) terminal.out.append(Buffer.from(RESET));
    const row = this.tally.rowOf(stage);
    if (row === undefined || row.status === 'SUCCESS') return;
    const time =
      row.startedAtMs === undefined || row.finishedAtMs === undefined
        ? ''
        : ` in ${durationText(row.finishedAtMs - row.startedAtMs)}`;
    terminal.note(
      `${printableText(stage)}: ${row.status}${time}${row.reason === undefined ? '' : `: ${printableText(row.reason)}`}`,
    );
  }
}
