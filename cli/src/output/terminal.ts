/** Where a command writes: our standard output and standard error, and whether to colour them. */
import { isatty } from 'node:tty';
import { OutputWriter } from './output-writer.ts';

export class Terminal {
  readonly out = new OutputWriter(1);
  readonly err = new OutputWriter(2);
  readonly outIsTerminal = isatty(1);
  readonly errIsTerminal = isatty(2);

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
