/** All mutants that are written by hand: at least two of each rule that is built. */
import type { Mutant } from './mutant.ts';
import { logAndOwner } from './rules/log-and-owner.ts';
import { operating } from './rules/operating.ts';
import { ownerAndRunner } from './rules/owner-and-runner.ts';
import { people } from './rules/people.ts';
import { pods } from './rules/pods.ts';
import { reruns } from './rules/reruns.ts';
import { schedulesAndAdded } from './rules/schedules-and-added.ts';
import { secretsAndObjects } from './rules/secrets-and-objects.ts';
import { watchingAndIntake } from './rules/watching-and-intake.ts';

export const mutants: readonly Mutant[] = [
  ...logAndOwner,
  ...ownerAndRunner,
  ...watchingAndIntake,
  ...people,
  ...schedulesAndAdded,
  ...reruns,
  ...secretsAndObjects,
  ...operating,
  ...pods,
];
