/** How one test went, as it is kept: a line of JSON each. Written by a runner, read by strangers to it, who check it. */

export type TestStatus = 'passed' | 'failed' | 'skipped';
export const TEST_STATUSES: readonly TestStatus[] = ['passed', 'failed', 'skipped'];

export interface TestCase {
  /** Of the suite that holds it; its class's name, or the empty text, where that has none. */
  readonly suite: string;
  /** Absent: it has none. */
  readonly className?: string | undefined;
  readonly name: string;
  readonly status: TestStatus;
  readonly durationSecs: number;
  /** Why it failed or was skipped, where its file says so. */
  readonly message?: string | undefined;
}

/** What a run's journal has of a stage's tests. */
export interface TestCounts {
  readonly total: number;
  readonly failed: number;
  readonly skipped: number;
  readonly durationMs: number;
}

/** Of a suite, a class, a test, in UTF-16 units. */
export const NAME_LENGTH_MAX = 500;
export const MESSAGE_LENGTH_MAX = 2_000;
/**
 * Read beyond these, for masking: what is cut off could be the rest of a secret value, whose pieces are looked for, and none of
 * them is longer.
 */
export const MARGIN_LENGTH = 64;
/** A century: more no test can take. */
export const DURATION_SECS_MAX = 3_155_760_000;

/** `margin`: what its texts may have beyond their bounds. Undefined: the line is none of a test. */
export function testCaseOf(line: string, margin = 0): TestCase | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  const { suite, className, name, status, durationSecs, message } = (value ?? {}) as Record<string, unknown>;
  if (typeof suite !== 'string' || typeof name !== 'string') return undefined;
  const known = TEST_STATUSES.find((each) => each === status);
  if (known === undefined || typeof durationSecs !== 'number' || !isDuration(durationSecs)) return undefined;
  const cut = (text: string, lengthMax: number): string => text.slice(0, lengthMax + margin);
  return {
    suite: cut(suite, NAME_LENGTH_MAX),
    ...(typeof className === 'string' ? { className: cut(className, NAME_LENGTH_MAX) } : {}),
    name: cut(name, NAME_LENGTH_MAX),
    status: known,
    durationSecs,
    ...(typeof message === 'string' ? { message: cut(message, MESSAGE_LENGTH_MAX) } : {}),
  };
}

export function isDuration(seconds: number): boolean {
  return seconds >= 0 && seconds <= DURATION_SECS_MAX;
}

/** No half of a character is left at the end. */
export function shortened(text: string, lengthMax: number): string {
  return text.length <= lengthMax ? text : `${text.slice(0, lengthMax - 1).toWellFormed()}…`;
}
