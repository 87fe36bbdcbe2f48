import type { Mutation } from '../world/mutations.ts';
import { contended, noFaults, quietForHours, type Profile } from '../world/profile.ts';
import { RUNNER_LEASE_MS } from '@penstock/bus';

/** Worlds in which a rule matters more than in most: what makes its breaking show within a few of them. */
export const mutationProfiles: { readonly [mutation in Mutation]?: Partial<Profile> } = {
  'acts-for-ever': {
    schedulers: 3,
    runs: 12,
    illMs: 50_000,
    latencyMs: 40,
    faults: { ...noFaults, schedulerFreeze: 20 },
  },
  'waits-by-the-wall-clock': { runs: 12, stageHangs: 0.3, runnersLazy: true, faults: { ...noFaults, clockStep: 20 } },
  'late-no-responders-frees': {
    runners: 3,
    runs: 12,
    lost: 0.15,
    stageMs: 12_000,
    illMs: 50_000,
    faults: { ...noFaults, runnerCut: 30 },
  },
  'guard-counts-from-the-line': {
    schedulers: 1,
    runners: 3,
    runs: 12,
    leaseMs: RUNNER_LEASE_MS,
    illMs: 50_000,
    stageMs: 20_000,
    slow: 0,
    latencyMs: 250,
    faults: { ...noFaults, runnerFreeze: 12, runnerCut: 20 },
  },
  'no-fair-slots': { ...contended, stageMs: 8_000, illMs: 50_000, faults: noFaults },
  'forgets-the-old-bucket': { faults: { ...noFaults, bucketAnew: 8 }, stageMs: 8_000, runners: 3, schedulers: 3 },
  'log-of-any-replica': { runs: 12, logs: true, staleReplica: 0.5, lost: 0.15 },
  'cursor-of-what-is-stored': { runners: 3, runs: 12, logs: true, lost: 0.15 },
  'journal-of-any-replica': {
    schedulers: 3,
    staleReplica: 0.8,
    logs: false,
    staleMs: 8_000,
    faults: { ...noFaults, schedulerCrash: 10 },
  },
  'forgets-stored-heads': {
    schedulers: 2,
    runs: 30,
    pulls: 1,
    stageMs: 300,
    illMs: 50_000,
    faults: { ...noFaults, schedulerCrash: 15 },
  },
  'forgets-added-stages': { generates: 0.6, runs: 8, poison: 0 },
  'keeps-quiet-journals': { ...quietForHours, schedulers: 1, runners: 1, runs: 4, faults: noFaults },
  'forgets-the-deleted': {
    schedulers: 3,
    runs: 12,
    deletes: 0.8,
    illMs: 50_000,
    stageMs: 300,
    faults: { ...noFaults, schedulerCrash: 10 },
  },
  'ticks-not-looked-up': {
    schedulers: 3,
    schedules: 3,
    runs: 2,
    stageMs: 300,
    illMs: 50_000,
    faults: { ...noFaults, schedulerCrash: 10, clockStep: 20 },
  },
  'schedules-last': { schedules: 2, runs: 3 },
  'no-guard': { runners: 3, stageMs: 8_000 },
};
