/** Where a command writes: our standard output and standard error, and whether to colour them. */
import { isatty } from 'node:tty';
import { systemReason } from '@penstock/errors';
import { EXIT } from '../process/errors.ts';
import { OutputWriter } from './output-writer.ts';

/** Nothing can be told in less. */
const COLUMNS_MIN = 20;
/** Of a terminal that does not say. */
const COLUMNS_USUAL = 80;

export class Terminal {
  readonly out = new OutputWriter(1);
  readonly err = new OutputWriter(2);
  readonly outIsTerminal = isatty(1);
  readonly errIsTerminal = isatty(2);

  /** The width that output is made for: COLUMNS, else the terminal's; undefined where no terminal reads. */
  columns(env: Readonly<Record<string, string | undefined>>): number | undefined {
    const given = env['COLUMNS'] ?? '';
    if (/^[1-9]\d{0,3}$/.test(given)) return Math.max(COLUMNS_MIN, Number(given));
    return this.outIsTerminal ? Math.max(COLUMNS_MIN, process.stdout.columns || COLUMNS_USUAL) : undefined;
  }

  /** Of the screen; undefined where no terminal reads. */
  rows(): number | undefined {
    return this.outIsTerminal ? process.stdout.rows : undefined;
  }

  /** Of the screen, where it breaks lines; undefined where no terminal reads. */
  width(): number | undefined {
    return this.outIsTerminal ? process.stdout.columns : undefined;
  }

  /** Writes a line of ours beside what was asked for: progress, a warning, an error. */
  note(line: string): void {
    void this.err.write(Buffer.from(`${line}\n`));
  }

  print(text: string): void {
    void this.out.write(Buffer.from(text));
  }

  /** Resolves when all of it has been written, or nobody reads it any more. */
  async flush(): Promise<void> {
    await Promise.all([this.out.flush(), this.err.flush()]);
  }

  /** Flushes; the exit code then is another where what was asked for has not reached its reader. */
  async ended(exitCode: number): Promise<number> {
    await this.flush();
    const { failure } = this.out;
    if (failure === undefined) return exitCode;
    const isReaderGone = failure.code === 'EPIPE';
    if (!isReaderGone) {
      this.note(`penstock: the output could not be written whole: ${systemReason(failure)}`);
      await this.err.flush();
    }
    if (exitCode !== EXIT.success && exitCode !== EXIT.brokenPipe) return exitCode;
    return isReaderGone ? EXIT.brokenPipe : EXIT.failure;
  }
}

export interface ColorChoice {
  readonly color: boolean;
  readonly noColor: boolean;
}

/** An option beats the environment (NO_COLOR, a dumb terminal), which beats what the descriptor is. */
export function wantsColor(
  choice: ColorChoice,
  env: Readonly<Record<string, string | undefined>>,
  isTerminal: boolean,
): boolean {
  if (choice.noColor) return false;
  if (choice.color) return true;
  if ((env['NO_COLOR'] ?? '') !== '' || env['TERM'] === 'dumb') return false;
  return isTerminal;
}
