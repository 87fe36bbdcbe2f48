/**
 * What a seed's world is like: its size, and how likely each fault is in it. Every world has some kinds of faults and not
 * others, so that rare mixtures of two or three are met as well as single ones.
 */
import type { Random } from '../../support/random.ts';

/** Happens on average so many times a minute while the world is ill; 0: never in this world. */
export interface FaultRates {
  readonly schedulerCrash: number;
  readonly schedulerFreeze: number;
  readonly schedulerCut: number;
  readonly schedulerStop: number;
  readonly runnerCrash: number;
  readonly runnerFreeze: number;
  readonly runnerCut: number;
  readonly runnerStop: number;
  readonly runnerDiskFull: number;
  readonly brokerOutage: number;
  readonly storeOutage: number;
  readonly powerCut: number;
  readonly journalFull: number;
  readonly clockStep: number;
  readonly brokerFull: number;
  readonly bucketAnew: number;
  readonly gatewayCut: number;
  readonly registryCrash: number;
  readonly registryClock: number;
  readonly storageOutage: number;
  readonly cacheDamaged: number;
}

export const noFaults: FaultRates = {
  schedulerCrash: 0,
  schedulerFreeze: 0,
  schedulerCut: 0,
  schedulerStop: 0,
  runnerCrash: 0,
  runnerFreeze: 0,
  runnerCut: 0,
  runnerStop: 0,
  runnerDiskFull: 0,
  brokerOutage: 0,
  storeOutage: 0,
  powerCut: 0,
  journalFull: 0,
  clockStep: 0,
  brokerFull: 0,
  bucketAnew: 0,
  gatewayCut: 0,
  registryCrash: 0,
  registryClock: 0,
  storageOutage: 0,
  cacheDamaged: 0,
};

/** Runs of a repository that wait for an approval at a time. */
export const HELD_MAX = 2;

export interface Profile {
  readonly schedulers: number;
  readonly runners: number;
  readonly partitions: number;
  readonly keys: number;
  readonly runs: number;
  /** Nothing happens before this: the ids of runs are then younger than the owners' opening (P7). */
  readonly quietMs: number;
  /** For so long after it there are faults and new runs. */
  readonly illMs: number;
  readonly leaseMs: number;
  /** How full the journal is at any time, 0 to 1; from 0.5 everything projected is purged. */
  readonly journalUsed: number;
  readonly queueTimeoutMs: number;
  /** `SERVICE_KEY_SLOTS`. */
  readonly keySlots: number | undefined;
  readonly latencyMs: number;
  /** Of messages between services. */
  readonly lost: number;
  readonly duplicated: number;
  readonly slow: number;
  readonly slowMs: number;
  /** Of requests to broker and store: lost on the way there, or done and the answer lost. */
  readonly requestLost: number;
  readonly answerLost: number;
  readonly storeLatencyMs: number;
  readonly storeFails: number;
  readonly stageFails: number;
  readonly stageHangs: number;
  /** A runner that does not end its stages at their timeout. */
  readonly runnersLazy: boolean;
  readonly stageMs: number;
  readonly cancels: number;
  /** Stages write lines, and clients read the log streams of gateways. */
  readonly logs: boolean;
  /** Of callbacks that the outside calls: so many throw, before they have done anything. */
  readonly callbackThrows: number;
  /** Of watches that begin anew: so many do on a replica that is behind, by so much at most. */
  readonly staleReplica: number;
  readonly staleMs: number;
  /** Of runs: so many have a file of so many characters. */
  readonly large: number;
  readonly largeLength: number;
  readonly poison: number;
  readonly unrestorable: number;
  readonly clockSkewMs: number;
  /** Of runs whose key has limits; of those that have ended as they begin. */
  readonly quotas: number;
  readonly endedAtOnce: number;
  /** How long after its beginning the world sees another month; 0: not in its time. */
  readonly monthEndsInMs: number;
  /** How much memory the live runs of a scheduler may take, of which the smallest takes 4 KiB; 0: there is enough for all. */
  readonly liveBytesMax: number;
  /** Of runs: so many are of a pull request, half of them from a fork. */
  readonly pulls: number;
  /** How long those wait for an approval. */
  readonly approvalMs: number;
  /** Of stages: so many wait for people. */
  readonly gates: number;
  /** Of stages: so many add others to their run. */
  readonly generates: number;
  /** Of runs: so many are repeated, and so many of those again. */
  readonly reruns: number;
  /** Repositories whose files say that they are started at some times. */
  readonly schedules: number;
  /** Of runs: so many are deleted once they have ended. */
  readonly deletes: number;
  /** Pauses and drains a minute. */
  readonly pauses: number;
  /** How often a minute runners of tenants' own are shut out, or let in again; 0: there are none. */
  readonly fleet: number;
  /** Of stages: so many keep files, and so many leave a cache. */
  readonly keeps: number;
  /** How long ago what nobody names was stored that the sweep takes. */
  readonly sweptAfterMs: number;
  readonly faults: FaultRates;
}

/** Keys that wait for the slots of one runner, and little that is in the way of who decides. */
export const contended = {
  schedulers: 1,
  runners: 1,
  keys: 3,
  runs: 14,
  quietMs: 3_000,
  queueTimeoutMs: 86_400_000,
  latencyMs: 3,
  slow: 0,
  requestLost: 0,
  answerLost: 0,
  callbackThrows: 0,
  staleReplica: 0,
  large: 0,
  poison: 0,
  unrestorable: 0,
  quotas: 0,
  logs: false,
  liveBytesMax: 0,
  pulls: 0,
  gates: 0,
  generates: 0,
  reruns: 0,
  schedules: 0,
  deletes: 0,
  pauses: 0,
  fleet: 0,
  keeps: 0,
} satisfies Partial<Profile>;

/** Hours in which little happens: partitions are quiet for longer than their journals are kept (P8). */
export const quietForHours = {
  partitions: 4,
  quietMs: 3_000,
  illMs: 2.75 * 60 * 60 * 1000,
  journalUsed: 0,
  lost: 0,
  duplicated: 0,
  slow: 0,
  requestLost: 0,
  answerLost: 0,
  storeFails: 0,
  callbackThrows: 0,
  staleReplica: 0,
  large: 0,
  unrestorable: 0,
  logs: false,
} satisfies Partial<Profile>;

/** Faults come as much more rarely as such a world lasts longer. */
const RARER = 200;

/** Whether a world lasts for hours. */
export function lastsHours({ illMs }: Pick<Profile, 'illMs'>): boolean {
  return illMs >= quietForHours.illMs;
}

/** Owners stay until the faults that all such worlds have (`faults.ts`). */
function overHours(profile: Profile): Profile {
  const { schedulers, runs, faults } = profile;
  return {
    ...profile,
    ...quietForHours,
    schedulers: Math.min(schedulers, 2),
    runners: 1,
    runs: Math.min(runs, 12),
    fleet: 0,
    keeps: 0,
    faults: {
      ...noFaults,
      runnerCrash: faults.runnerCrash / RARER,
      runnerFreeze: faults.runnerFreeze / RARER,
      storeOutage: faults.storeOutage / RARER,
      gatewayCut: faults.gatewayCut / RARER,
      clockStep: 4 / RARER,
    },
  };
}

/** Whether an owner's decisions are in the log soon, and what it knows is what there is. */
export function isCalm({ faults, ...profile }: Profile): boolean {
  const { latencyMs, slow, requestLost, answerLost, callbackThrows, staleReplica, large, poison, unrestorable } =
    profile;
  const troubles = [slow, requestLost, answerLost, callbackThrows, staleReplica, large, poison, unrestorable];
  const { schedulerFreeze, schedulerCut, brokerOutage, powerCut, journalFull, brokerFull, bucketAnew } = faults;
  troubles.push(schedulerFreeze, schedulerCut, brokerOutage, powerCut, journalFull, brokerFull, bucketAnew);
  return profile.liveBytesMax === 0 && latencyMs <= 15 && troubles.every((trouble) => trouble === 0);
}

/** Sources of chance of their own: worlds of before they were drawn from are as they were. */
interface Sources {
  readonly memory: Random;
  readonly hours: Random;
  readonly pauses: Random;
  readonly keeps: Random;
  readonly fleets: Random;
}

export function drawProfile(random: Random, { memory, hours, pauses, keeps, fleets }: Sources): Profile {
  const drawn = drawShort(random, memory);
  const isPaused = pauses.chance(0.15) && drawn.pauses === undefined;
  const fleet = fleets.chance(0.1) && drawn.fleet === undefined ? fleets.between(0.5, 8) : 0;
  const profile = withKept({ ...drawn, pauses: isPaused ? pauses.between(2, 12) : 0, fleet }, keeps);
  return hours.chance(0.002) ? overHours(profile) : profile;
}

/** With more of them it takes long until all that they keep has been looked at. */
const KEEPING_RUNS_MAX = 14;

/** Stages that keep files, and what happens to those who have them. */
function withKept(
  profile: Omit<Profile, 'keeps' | 'sweptAfterMs'> & { readonly keeps?: number },
  keeps: Random,
): Profile {
  const sweptAfterMs = keeps.between(500, 20_000);
  if (!keeps.chance(0.1) || profile.keeps !== undefined) return { ...profile, keeps: 0, sweptAfterMs };
  const some = (probability: number, high: number): number =>
    keeps.chance(probability) ? keeps.between(0.5, high) : 0;
  const faults = {
    ...profile.faults,
    registryCrash: some(0.5, 6),
    registryClock: some(0.5, 6),
    storageOutage: some(0.4, 3),
    cacheDamaged: some(0.5, 12),
  };
  // Half of them have runs that take over what others have kept, some of which are deleted.
  const taken = keeps.chance(0.5)
    ? { reruns: keeps.between(0.4, 0.9), deletes: keeps.chance(0.5) ? keeps.between(0.1, 0.5) : 0, pulls: 0 }
    : {};
  const runs = Math.min(profile.runs, KEEPING_RUNS_MAX);
  return { ...profile, ...taken, runs, faults, keeps: keeps.between(0.3, 0.9), sweptAfterMs };
}

type Drawn = Omit<Profile, 'pauses' | 'fleet' | 'keeps' | 'sweptAfterMs'> &
  Partial<Pick<Profile, 'pauses' | 'fleet' | 'keeps'>>;

function drawShort(random: Random, memory: Random): Drawn {
  const profile = drawAny(random, memory);
  if (!random.chance(0.04)) return profile;
  const { schedulerCrash, schedulerStop, runnerCrash, storeOutage, clockStep } = profile.faults;
  return {
    ...profile,
    ...contended,
    faults: { ...noFaults, schedulerCrash, schedulerStop, runnerCrash, storeOutage, clockStep },
  };
}

function drawAny(random: Random, memory: Random): Drawn {
  const some = (probability: number, low: number, high: number): number =>
    random.chance(probability) ? random.between(low, high) : 0;
  const illMs = random.between(15_000, 50_000);
  const slow = some(0.4, 0.005, 0.1);
  const liveBytesMax = memory.chance(0.2) ? memory.between(18_000, 60_000) : 0;
  const moreRuns = liveBytesMax > 0 ? memory.int(9) : 0;
  const pulls = memory.chance(0.5) ? memory.between(0.2, 0.9) : 0;
  return {
    schedulers: 1 + random.int(3),
    runners: 1 + random.int(3),
    partitions: random.pick([1, 1, 2, 2, 4]),
    keys: 1 + random.int(3),
    runs: (random.chance(0.04) ? 30 + random.int(50) : 2 + random.int(9)) + moreRuns,
    quietMs: random.chance(0.15) ? 62_000 : 3_000,
    illMs,
    leaseMs: random.pick([6_000, 9_000, 15_000]),
    journalUsed: random.chance(0.3) ? 0.6 : 0,
    queueTimeoutMs: random.chance(0.15) ? random.between(5_000, 30_000) : 86_400_000,
    keySlots: random.chance(0.3) ? 1 + random.int(3) : undefined,
    latencyMs: random.between(0.5, 15),
    lost: some(0.4, 0.005, 0.15),
    duplicated: some(0.4, 0.01, 0.2),
    slow,
    slowMs: random.between(500, 9_000),
    requestLost: some(0.3, 0.005, 0.08),
    answerLost: some(0.4, 0.005, 0.15),
    storeLatencyMs: random.chance(0.2) ? random.between(200, 1_500) : random.between(1, 20),
    storeFails: some(0.3, 0.01, 0.2),
    stageFails: random.between(0, 0.4),
    stageHangs: some(0.3, 0.02, 0.2),
    runnersLazy: random.chance(0.2),
    stageMs: random.between(200, 4_000),
    cancels: some(0.7, 0.1, 0.6),
    logs: random.chance(0.3),
    callbackThrows: some(0.12, 0.001, 0.02),
    staleReplica: some(0.3, 0.1, 0.8),
    staleMs: random.between(200, 8_000),
    large: some(0.05, 0.1, 0.5),
    largeLength: random.pick([20_000, 200_000, 500_000]),
    poison: some(0.1, 0.05, 0.3),
    unrestorable: some(0.1, 0.05, 0.3),
    clockSkewMs: some(0.3, 100, 5_000),
    faults: {
      schedulerCrash: some(0.35, 0.5, 5),
      schedulerFreeze: some(0.35, 0.5, 5),
      schedulerCut: some(0.3, 0.5, 4),
      schedulerStop: some(0.35, 0.5, 5),
      runnerCrash: some(0.35, 0.5, 5),
      runnerFreeze: some(0.35, 0.5, 5),
      runnerCut: some(0.3, 0.5, 4),
      runnerStop: some(0.2, 0.5, 4),
      runnerDiskFull: some(0.2, 0.5, 4),
      brokerOutage: some(0.25, 0.5, 3),
      storeOutage: some(0.3, 0.5, 3),
      powerCut: some(0.08, 0.5, 2),
      journalFull: some(0.1, 0.5, 2),
      clockStep: some(0.3, 0.5, 6),
      brokerFull: some(0.15, 0.5, 2),
      bucketAnew: some(0.1, 0.5, 2),
      gatewayCut: some(0.3, 0.5, 6),
      registryCrash: 0,
      registryClock: 0,
      storageOutage: 0,
      cacheDamaged: 0,
    },
    quotas: random.chance(0.6) ? 1 : 0,
    endedAtOnce: some(0.5, 0.05, 0.3),
    monthEndsInMs: some(0.25, 5_000, 50_000),
    liveBytesMax,
    pulls,
    approvalMs: memory.between(3_000, 40_000),
    gates: memory.chance(0.35) ? memory.between(0.1, 0.5) : 0,
    generates: memory.chance(0.4) ? memory.between(0.1, 0.6) : 0,
    schedules: memory.chance(0.2) ? 1 + memory.int(3) : 0,
    deletes: memory.chance(0.3) ? memory.between(0.1, 0.6) : 0,
    reruns: memory.chance(0.4) ? memory.between(0.3, 0.9) : 0,
  };
}
