/** All mutants that are written by hand: at least two of each rule that is built. */
import type { Mutant } from './mutant.ts';
import { logAndOwner } from './rules/log-and-owner.ts';
import { ownerAndRunner } from './rules/owner-and-runner.ts';
import { people } from './rules/people.ts';
import { pods } from './rules/pods.ts';
import { reruns } from './rules/reruns.ts';
import { watchingAndIntake } from './rules/watching-and-intake.ts';

export const mutants: readonly Mutant[] = [
  ...logAndOwner,
  ...ownerAndRunner,
  ...watchingAndIntake,
  ...people,
  ...reruns,
  ...pods,
];
