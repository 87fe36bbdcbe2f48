/**
 * Tries mutants, several at a time, each in a working copy. A check is first run on the code as it is: one that fails there, or
 * checks nothing, says nothing of a mutant.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { mutated, whyNotFound, type Check, type Mutant } from './mutant.ts';
import { nameOf, runCheck, type Verdict } from './trial.ts';
import { WorkingCopy } from './working-copy.ts';

type Fate =
  | { readonly kind: 'killed'; readonly by: string; readonly why: string }
  | { readonly kind: 'lived' }
  /** Nothing can be said: its text is not found, or a check fails on the code as it is. */
  | { readonly kind: 'error'; readonly why: string };

export interface Tried {
  readonly mutant: Mutant;
  readonly fate: Fate;
  readonly seconds: number;
}

export interface SessionOptions {
  /** The checkout. */
  readonly root: string;
  readonly mutants: readonly Mutant[];
  /** Working copies at a time. */
  readonly jobs: number;
  readonly tried: (tried: Tried) => void;
}

export async function tryMutants(options: SessionOptions): Promise<Tried[]> {
  const waiting = [...options.mutants];
  const soundness = new Map<string, Promise<string | undefined>>();
  const all: Tried[] = [];
  const work = async (): Promise<void> => {
    const copy = new WorkingCopy(options.root);
    const removeAtExit = (): void => copy.remove();
    process.once('exit', removeAtExit);
    try {
      for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
        const startedAt = performance.now();
        const fate = await fateOf(copy, mutant, soundness);
        const tried = { mutant, fate, seconds: (performance.now() - startedAt) / 1000 };
        all.push(tried);
        options.tried(tried);
      }
    } finally {
      process.off('exit', removeAtExit);
      copy.remove();
    }
  };
  await Promise.all(Array.from({ length: Math.max(1, Math.min(options.jobs, waiting.length)) }, work));
  return all;
}

async function fateOf(
  copy: WorkingCopy,
  mutant: Mutant,
  soundness: Map<string, Promise<string | undefined>>,
): Promise<Fate> {
  const notFound = whyNotFound(copy.root, mutant);
  if (notFound !== undefined) return { kind: 'error', why: notFound };
  for (const check of mutant.noticedBy) {
    const unsound = await soundnessOf(copy, check, soundness);
    if (unsound !== undefined) return { kind: 'error', why: unsound };
    const text = mutated(readFileSync(join(copy.root, mutant.file), 'utf8'), mutant);
    const verdict = await copy.withText(mutant.file, text, () => runCheck(copy.root, check));
    if (verdict.kind !== 'passed') return { kind: 'killed', by: nameOf(check), why: verdict.why };
  }
  return { kind: 'lived' };
}

/** Why the check says nothing; undefined: it passes on the code as it is. A busy machine has a second try. */
function soundnessOf(
  copy: WorkingCopy,
  check: Check,
  soundness: Map<string, Promise<string | undefined>>,
): Promise<string | undefined> {
  const name = nameOf(check);
  const known = soundness.get(name);
  if (known !== undefined) return known;
  const asked = runCheck(copy.root, check)
    .then((verdict) => (verdict.kind === 'failed' ? runCheck(copy.root, check) : verdict))
    .then((verdict: Verdict) =>
      verdict.kind === 'passed' ? undefined : `${name} does not pass on the code as it is: ${verdict.why}`,
    );
  soundness.set(name, asked);
  return asked;
}
