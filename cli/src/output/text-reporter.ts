/**
 * Shows a run as text for a person: each line of output stands behind its stage's name, as it comes; our own remarks stand
 * behind `>` instead of `|`; the table comes at the end.
 *
 *  TEXTREPORT-1 A stage's bytes are shown as they are: the prefix is added, the time where that is wanted, a `\n` where the
 *     last line lacks it, nothing else. With colours the prefix begins by resetting what the line before may have left switched on.
 *  TEXTREPORT-2 A line stands whole: nothing of another stage comes between its prefix and its end.
 *  TEXTREPORT-3 With `quiet` only a failed stage's last output is shown, from a buffer of TAIL_BYTES a running stage.
 */
import type { LogStreamName, PublicRunEvent } from '@penstock/run/public-events';
import { TailBuffer } from './tail-buffer.ts';
import type { OutputWriter } from './output-writer.ts';
import { painter, RESET, STAGE_COLORS, type Painter } from './painter.ts';
import { cellsOf, fitText, printableText } from './printable-text.ts';
import { isoTimer } from './iso-time.ts';
import { StageLabels } from './stage-labels.ts';
import type { Reporter } from './reporter.ts';
import { durationText, reasonText, StageTally } from './stage-tally.ts';
import { summaryTable } from './summary-table.ts';
import { tameLines } from './tame-lines.ts';

/** Longer names are shortened in the prefix; the table shows more of them. */
const PREFIX_CELLS_MAX = 28;
/** The output has the rest of the terminal's width. */
const PREFIX_SHARE_MAX = 1 / 3;
/** Where the names are not known beforehand the prefix starts with this and grows. */
const PREFIX_CELLS_MIN = 8;
const TAIL_BYTES = 64 * 1024;
const NEWLINE = 0x0a;
const LINE_END = Buffer.from('\n');
const NO_TIME = Buffer.alloc(0);

export interface TextReporterOptions {
  readonly out: OutputWriter;
  readonly stages: readonly string[];
  readonly color: boolean;
  readonly quiet: boolean;
  /** When the run began, milliseconds since 1970; absent: the time of its first event. */
  readonly startedAtMs?: number | undefined;
  /** The output is a stranger's and goes to a terminal: of its escape sequences only colours are let through. */
  readonly tame?: boolean | undefined;
  /** The width of the terminal; absent: there is none, and nothing is made to fit. */
  readonly columns?: number | undefined;
  /** Each line begins with its time in UTC. */
  readonly timestamps?: boolean | undefined;
}

interface StageLook {
  readonly linePrefix: Buffer;
  readonly remarkPrefix: Buffer;
}

export class TextReporter implements Reporter {
  readonly tally: StageTally;
  readonly #options: TextReporterOptions;
  readonly #paint: Painter;
  readonly #looks = new Map<string, StageLook>();
  readonly #tails = new Map<string, TailBuffer>();
  readonly #indexes = new Map<string, number>();
  readonly #labels: StageLabels;
  readonly #isoTime = isoTimer();
  #cells: number;

  constructor(options: TextReporterOptions) {
    this.#options = options;
    this.#paint = painter(options.color);
    this.tally = new StageTally(options.stages, options.startedAtMs);
    const cellsMax = Math.max(PREFIX_CELLS_MIN, Math.floor((options.columns ?? Infinity) * PREFIX_SHARE_MAX));
    this.#labels = new StageLabels(options.stages, Math.min(PREFIX_CELLS_MAX, cellsMax));
    this.#cells = Math.max(PREFIX_CELLS_MIN, this.#labels.cells);
    options.stages.forEach((name, index) => this.#indexes.set(name, index));
  }

  event(event: PublicRunEvent): void {
    this.tally.take(event);
    const atMs = Date.parse(event.timestamp);
    switch (event.type) {
      case 'stage_started':
        this.#tails.delete(event.stage);
        return;
      case 'stage_retrying':
        this.#remark(
          event.stage,
          this.#paint(
            'yellow',
            `attempt ${event.attempt} failed (${printableText(reasonText(event.reason, event.exitCode))}), trying again`,
          ),
          atMs,
        );
        return;
      case 'stage_completed': {
        const row = this.tally.rowOf(event.stage);
        const time =
          row?.startedAtMs === undefined || row.finishedAtMs === undefined
            ? ''
            : ` in ${durationText(row.finishedAtMs - row.startedAtMs)}`;
        if (event.status === 'Failed') this.#showTail(event.stage, atMs);
        this.#tails.delete(event.stage);
        if (event.status === 'Success') {
          const how = event.adopted === true ? ' in the run that this one repeats' : time;
          if (!this.#options.quiet) this.#remark(event.stage, this.#paint('green', `SUCCESS${how}`), atMs);
        } else
          this.#remark(
            event.stage,
            this.#paint('red', `FAILED${time}: ${printableText(reasonText(event.reason, event.exitCode))}`),
            atMs,
          );
        return;
      }
      case 'stage_approval': {
        const { by, decision, comment, approved, quorum } = event;
        const said = comment === undefined ? '' : `: ${printableText(comment)}`;
        const count = decision === 'approved' ? ` (${approved} of ${quorum})` : '';
        this.#remark(
          event.stage,
          this.#paint('dim', `${printableText(decision)} by ${printableText(by)}${count}${said}`),
          atMs,
        );
        return;
      }
      case 'stages_added':
        if (!this.#options.quiet) {
          const count = event.stages.length === 1 ? 'a stage' : `${event.stages.length} stages`;
          this.#remark(event.stage, this.#paint('dim', `added ${count}`), atMs);
        }
        return;
      case 'stage_skipped':
        if (!this.#options.quiet)
          this.#remark(
            event.stage,
            this.#paint('dim', `SKIPPED: ${printableText(reasonText(event.reason, undefined))}`),
            atMs,
          );
        return;
      default:
        return;
    }
  }

  lines(stage: string, _stream: LogStreamName, bytes: Buffer, timestampMs: number): void | Promise<void> {
    const { tame, color } = this.#options;
    const shown = tame === true ? tameLines(bytes, { color }) : bytes;
    if (!this.#options.quiet) {
      this.#show(stage, shown, timestampMs);
      return this.#options.out.room();
    }
    let tail = this.#tails.get(stage);
    if (tail === undefined) {
      tail = new TailBuffer(TAIL_BYTES);
      this.#tails.set(stage, tail);
    }
    tail.push(shown);
  }

  finish(): void {
    this.#options.out.append(Buffer.from(summaryTable(this.tally, this.#paint, this.#options.columns)));
  }

  #showTail(stage: string, atMs: number): void {
    const tail = this.#tails.get(stage);
    if (tail === undefined) return;
    const { bytes, truncated } = tail.wholeLines();
    if (truncated)
      this.#remark(stage, this.#paint('dim', `its last ${Math.round(bytes.length / 1024)} KiB of output:`), atMs);
    this.#show(stage, bytes, atMs);
  }

  #show(stage: string, bytes: Buffer, atMs: number): void {
    const { out } = this.#options;
    const time = this.#timeOf(atMs);
    const { linePrefix } = this.#lookOf(stage);
    let from = 0;
    while (from < bytes.length) {
      const newline = bytes.indexOf(NEWLINE, from);
      const to = newline === -1 ? bytes.length : newline + 1;
      out.append(time);
      out.append(linePrefix);
      out.append(bytes, from, to);
      if (newline === -1) out.append(LINE_END);
      from = to;
    }
  }

  #remark(stage: string, text: string, atMs: number): void {
    const { out } = this.#options;
    out.append(this.#timeOf(atMs));
    out.append(this.#lookOf(stage).remarkPrefix);
    out.append(Buffer.from(`${text}\n`));
  }

  #timeOf(atMs: number): Buffer {
    return this.#options.timestamps === true ? Buffer.from(`${this.#isoTime(atMs)} `) : NO_TIME;
  }

  #lookOf(stage: string): StageLook {
    const known = this.#looks.get(stage);
    if (known !== undefined) return known;
    const label = this.#labels.labelOf(stage);
    const cells = cellsOf(label);
    if (cells > this.#cells) {
      this.#cells = cells;
      this.#looks.clear();
    }
    let index = this.#indexes.get(stage);
    if (index === undefined) {
      index = this.#indexes.size;
      this.#indexes.set(stage, index);
    }
    const color = STAGE_COLORS[index % STAGE_COLORS.length] ?? 'cyan';
    const fitted = fitText(label, this.#cells);
    const reset = this.#options.color ? RESET : '';
    const look = {
      linePrefix: Buffer.from(`${reset}${this.#paint(color, `${fitted} |`)} `),
      remarkPrefix: Buffer.from(`${reset}${this.#paint(color, `${fitted} >`)} `),
    };
    this.#looks.set(stage, look);
    return look;
  }
}
