/**
 * A mutant: a rule broken on purpose in the production code, as a small textual patch, and the tests that must notice it.
 *
 * MUTANT-1. The text that it replaces stands in its file exactly once: a mutant that is not found any more is an error and not
 *     a success, so that it follows the code.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Something that fails where the rule is broken. */
export type Check =
  /** A file of tests, and the titles in it that are run; without titles all are. */
  | { readonly tests: string; readonly titles?: readonly string[] | undefined }
  /** So many worlds of the simulation. */
  | { readonly worlds: number };

export interface Mutant {
  /** Of docs/protocols.md. */
  readonly rule: string;
  /** What the broken code does, as the rest of a sentence that begins with "it". */
  readonly breaks: string;
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  /** In this order, until one fails. */
  readonly noticedBy: readonly Check[];
}

/** What its text is in the file, where that is not once; undefined: it can be applied. */
export function whyNotFound(root: string, mutant: Mutant): string | undefined {
  const { file, find } = mutant;
  const found = readFileSync(join(root, file), 'utf8').split(find).length - 1;
  if (found === 1) return undefined;
  return `"${titleOf(mutant)}" is for a text that stands ${found === 0 ? 'no more' : `${found} times`} in ${file}: let it follow the code`;
}

export function mutated(text: string, { find, replace }: Mutant): string {
  return text.replace(find, () => replace);
}

export function titleOf({ rule, breaks }: Mutant): string {
  return `${rule}: it ${breaks}`;
}
