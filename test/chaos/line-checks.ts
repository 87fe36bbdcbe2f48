/** The lines of stages, which number them from 1 within an attempt: none is left out without a word, none comes twice. */
import type { StreamEvent } from '../support/sse.ts';

export interface NumberedLines {
  /** By attempt and stage: the last number. */
  readonly emitted: ReadonlyMap<string, number>;
  /** Stages of which a part is told as missing. */
  readonly missing: ReadonlySet<string>;
  /** The first one, in words. */
  readonly problem?: string | undefined;
}

const GAP = /^\[\d+ bytes of this log are no longer available\]$/;

/**
 * `mayRepeat`: who has come back may be shown again what stands behind a part that is gone, for a position in the log does not say
 * whether the lines behind a gap were shown.
 */
export function checkNumbers(events: readonly StreamEvent[], mayMiss: boolean, mayRepeat = false): NumberedLines {
  const emitted = new Map<string, number>();
  const missing = new Set<string>();
  /** Stages whose last line told of a gap: the next number is not known. */
  const open = new Set<string>();
  for (const { event, data } of events) {
    if (event !== 'stage_log') continue;
    const stage = String(data['stage']);
    const line = String(data['line']);
    if (data['stream'] === 'system' && GAP.test(line)) {
      if (!mayMiss) return { emitted, missing, problem: `${stage}: ${line}, and nothing had happened to it` };
      missing.add(stage);
      open.add(stage);
      continue;
    }
    const match = data['stream'] === 'stdout' ? /^line (\d+) (\d+)$/.exec(line) : null;
    if (match === null) continue;
    const key = `${match[1]} ${stage}`;
    const number = Number(match[2]);
    const expected = (emitted.get(key) ?? 0) + 1;
    if (open.delete(stage) ? number < expected && !mayRepeat : number !== expected)
      return { emitted, missing, problem: `line ${number} of attempt ${key} stands where ${expected} belongs` };
    emitted.set(key, number);
  }
  return { emitted, missing };
}
