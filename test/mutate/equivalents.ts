/**
 * Mutants of operators that lived, were read, and change nothing that a test could tell: with them a night's list is what has to be
 * looked at. A line that has changed since is an error of the tests (MUTANT-1), so that its reason is read again.
 */
export interface Equivalent {
  readonly file: string;
  /** Of `operators.ts`. */
  readonly operator: string;
  /** Without its indentation. */
  readonly line: string;
  readonly why: string;
}

export const equivalents: readonly Equivalent[] = [];
