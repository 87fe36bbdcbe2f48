/** What the stages themselves have written: when each attempt started, lived and ended, by the machine's clock. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Mark {
  /** `full`: what it publishes or adds could not be written, so that it ends. */
  readonly kind: 'start' | 'tick' | 'fail' | 'full' | 'end';
  readonly attempt: number;
  /** Milliseconds since 1970, with fractions. */
  readonly at: number;
}

/** By run id, then stage. */
export type Marks = ReadonlyMap<string, ReadonlyMap<string, readonly Mark[]>>;

export function readMarks(folder: string): Marks {
  const marks = new Map<string, Map<string, Mark[]>>();
  for (const file of readdirSync(folder)) {
    const dot = file.indexOf('.');
    const runId = file.slice(0, dot);
    const stages = marks.get(runId) ?? new Map<string, Mark[]>();
    marks.set(runId, stages);
    // No name of a file has a slash.
    stages.set(file.slice(dot + 1).replaceAll('+', '/'), parseMarks(readFileSync(join(folder, file), 'utf8')));
  }
  return marks;
}

/** A line that a kill has cut is none. */
export function parseMarks(text: string): Mark[] {
  return text.split('\n').flatMap((line) => {
    const match = /^(start|tick|fail|full|end) (\d+) (\d{19})$/.exec(line);
    return match === null
      ? []
      : [
          {
            kind: match[1] as Mark['kind'],
            attempt: Number(match[2]),
            at: Number(BigInt(match[3] ?? 0) / 1000n) / 1000,
          },
        ];
  });
}
