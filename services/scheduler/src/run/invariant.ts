/**
 * Invariants as code: each stateful class of a partition has `assertInvariants`, which looks at what its header numbers.
 * Tests call it after every step, the simulation after every turn of a scheduler that shows a change, and after some of the others.
 * In production it is sampled: a broken invariant is logged and counted there, for a partition that goes on is worth more than one
 * that stops (`shell/invariant-samples.ts`).
 */
import { TaggedError } from '@penstock/errors';

/** A rule of a class's header does not hold: a fault of the code, or of the memory that it runs in. */
class InvariantBroken extends TaggedError {
  readonly tag = 'InvariantBroken';
  /** As the header numbers it. */
  readonly label: string;
  readonly facts: Readonly<Record<string, unknown>>;

  constructor(label: string, rule: string, facts: Readonly<Record<string, unknown>>) {
    super(`${label} is broken: ${rule} (${JSON.stringify(facts)})`);
    this.label = label;
    this.facts = facts;
  }
}

/** Throws InvariantBroken unless `holds`; the facts are looked up only then. */
export function invariant(
  label: string,
  holds: boolean,
  rule: string,
  facts: () => Readonly<Record<string, unknown>>,
): void {
  if (!holds) throw new InvariantBroken(label, rule, facts());
}
