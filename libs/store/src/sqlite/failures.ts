/** SQLite's result codes as the port's errors. An error crosses from the worker thread as a Failure. */
import type { Failure } from '../failure.ts';

const PROBLEMS: Readonly<Record<number, readonly [tag: Failure['tag'], problem: string]>> = {
  3: ['unavailable', 'access to the file is denied'],
  5: ['unavailable', 'another process keeps the file locked'],
  6: ['unavailable', 'another connection keeps it locked'],
  8: ['unavailable', 'the file cannot be written to (its rights, or its file system is read-only)'],
  10: ['unavailable', 'reading or writing the file failed'],
  11: ['corrupt', 'the content of the file is malformed'],
  13: ['unavailable', 'the disk is full'],
  14: ['unavailable', 'the file cannot be opened (does its folder exist, and is it writable?)'],
  26: ['corrupt', 'the file is not a SQLite database'],
};

/** The file is sound, and not for this release. */
export class SchemaProblem extends Error {}
/** SQLite gave a row that the codec did not make. */
export class DecodeProblem extends Error {}

export function failureOf(error: unknown): Failure {
  if (error instanceof SchemaProblem) return { tag: 'incompatible', problem: error.message };
  const code = sqliteCode(error);
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof DecodeProblem) return { tag: 'corrupt', problem: message, cause: error.cause };
  if (code === null) return { tag: 'usage', problem: message, cause: error };
  // Extended codes carry the primary one in their low byte.
  const known = PROBLEMS[code & 0xff];
  if (known === undefined) return { tag: 'usage', problem: `SQLite answered ${code}: ${message}`, cause: error };
  return { tag: known[0], problem: `${known[1]} (SQLite ${code}: ${message})`, cause: error };
}

export function isBusy(error: unknown): boolean {
  return ((sqliteCode(error) ?? 0) & 0xff) === 5;
}

function sqliteCode(error: unknown): number | null {
  const code = (error as { readonly errcode?: unknown }).errcode;
  return typeof code === 'number' ? code : null;
}
