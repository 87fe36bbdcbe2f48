/**
 * Numbers and ids that must never stand for one another: an epoch given for a sequence, or a sequence for a version, does not
 * compile. A plain number or string is taken for any of them, as JSON and arithmetic make them; where one comes from
 * outside, its edge has checked it (`isRunId`, `asEpoch`, `asSequence`, `asVersion`).
 */
declare const brand: unique symbol;

/** Optional, so that it is a mark for the compiler alone: no value has it, and no cast is needed to get one. */
type Branded<Base, Name extends string> = Base & { readonly [brand]?: Name };

/** Of the owners of a partition, each higher than the one before (P3). */
export type Epoch = Branded<number, 'Epoch'>;
/** Where a commit stands in the journal, as the broker numbers it (P1). */
export type Sequence = Branded<number, 'Sequence'>;
/** How many events a run has; its first event has version 1 (P20). */
export type Version = Branded<number, 'Version'>;
/** The id of a run, which names the partition of its key (`run-id.ts`). */
export type RunId = Branded<string, 'RunId'>;

/** Throws a RangeError for what no owner of a partition has: epochs begin with 1. */
export function asEpoch(number: unknown): Epoch {
  return wholeNumber(number, 1, 'an epoch');
}

/** Throws a RangeError for what no broker numbers; 0 stands for the position before the first commit. */
export function asSequence(number: unknown): Sequence {
  return wholeNumber(number, 0, 'a sequence');
}

/** Throws a RangeError for what no run has; 0 stands for the position before its first event. */
export function asVersion(number: unknown): Version {
  return wholeNumber(number, 0, 'a version');
}

function wholeNumber(number: unknown, least: number, what: string): number {
  if (Number.isSafeInteger(number) && Number(number) >= least) return Number(number);
  throw new RangeError(`${what} is a whole number from ${least} on, not ${JSON.stringify(number) ?? typeof number}`);
}
