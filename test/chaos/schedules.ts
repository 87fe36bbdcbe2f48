/**
 * Schedules of faults: each a function of a seed and a length, so that seed, name and length are all that is needed to do
 * the same again. (The machine's own timing is not in the seed.)
 */
import type { Random } from '../support/random.ts';
import type { ClusterOptions } from '../cluster/cluster.ts';
import type { ServiceName } from '../cluster/service-process.ts';
import { serviceOf, type FaultKind } from './fault-kinds.ts';
import type { Fault } from './faults.ts';
import type { LoadProfile } from './load.ts';

export interface Schedule {
  readonly about: string;
  /** At full length. */
  readonly seconds: number;
  readonly profile: LoadProfile;
  /** Every request has to succeed: nothing here excuses a failure. */
  readonly strict?: boolean;
  /** What the cluster has to have, beyond what every chaos cluster has. */
  readonly cluster?: ClusterOptions;
  faults(options: FaultsOptions): readonly Fault[];
}

interface FaultsOptions {
  readonly random: Random;
  readonly seconds: number;
  /** What the mixed schedules are made of. */
  readonly kinds: readonly FaultKind[];
  /** How many processes of a service there are. */
  readonly countOf: (service: ServiceName) => number;
}

const MIXED: LoadProfile = {
  ratePerSec: 4,
  cancelShare: 0.15,
  watchShare: 0.35,
  readShare: 0.3,
  waitShare: 0.15,
  cutShare: 0.4,
  rerunShare: 0.15,
  ticks: true,
  cancelAfterMsMax: 2_500,
  shapes: {
    quick: 3,
    graph: 3,
    ticking: 1.5,
    chatty: 1,
    failing: 1,
    grouped: 1,
    daemon: 0.5,
    gated: 1.5,
    generating: 1,
  },
};
const LONG_STAGES: LoadProfile = { ...MIXED, ratePerSec: 3, shapes: { ticking: 5, graph: 2, quick: 1, grouped: 1 } };
/** In this order, so that a short schedule has one of each service. */
const LINK_FAULTS: readonly FaultKind[] = [
  'runner-half-open',
  'scheduler-half-open',
  'gateway-half-open',
  'scheduler-cut',
  'runner-cut',
  'gateway-cut',
];
const PEER_FAULTS: readonly FaultKind[] = [
  'peer-kill',
  'peer-stepdown',
  'peer-partition',
  'peer-stale',
  'peer-freeze',
  'scheduler-kill',
];
const STORE_LINK_FAULTS: readonly FaultKind[] = [
  'scheduler-store-cut',
  'gateway-store-half-open',
  'scheduler-store-slow',
  'gateway-store-cut',
  'scheduler-store-half-open',
  'gateway-store-slow',
];
const CLOCK_FAULTS: readonly FaultKind[] = ['scheduler-clock', 'runner-clock', 'gateway-clock'];
const DISK_FAULTS: readonly FaultKind[] = ['runner-disk-full', 'broker-disk-full', 'runner-disk-full'];
const DOOR_FAULTS: readonly FaultKind[] = [
  'auth-kill',
  'ingest-kill',
  'registry-kill',
  'auth-freeze',
  'ingest-half-open',
  'registry-freeze',
  'auth-cut',
  'ingest-freeze',
  'registry-cut',
  'ingest-cut',
  'auth-half-open',
  'registry-half-open',
  'ingest-term',
  'broker-kill',
  'auth-term',
  'registry-term',
];
/** Time at the end for what was begun, so that faults meet a load. */
const TAIL_MS = 2_000;

/** Room for the fault in the schedule, or less of it where the schedule is short. */
function lasting(wantedMs: number, seconds: number): number {
  return Math.min(wantedMs, Math.max(1_000, seconds * 1_000 - TAIL_MS - 3_000));
}

function fault(kind: FaultKind, atMs: number, lastsMs = 1_000, index = 0): Fault {
  return { kind, atMs, lastsMs, index };
}

export const schedules: Readonly<Record<string, Schedule>> = {
  'zombie-owner': {
    about: 'an owner frozen for 20 s with stages granted wakes under load',
    seconds: 60,
    profile: LONG_STAGES,
    faults: ({ random, seconds }) => {
      const lastsMs = lasting(20_000, seconds);
      const again = seconds * 1_000 - TAIL_MS - lastsMs;
      const first = fault('scheduler-freeze', 2_000, lastsMs, random.int(3));
      return again > lastsMs + 6_000 ? [first, fault('scheduler-freeze', again, lastsMs, first.index + 1)] : [first];
    },
  },
  'frozen-runner': {
    about: 'a runner frozen for 20 s with stages that write a tick file',
    seconds: 60,
    profile: LONG_STAGES,
    faults: ({ random, seconds }) => {
      const lastsMs = lasting(20_000, seconds);
      const again = seconds * 1_000 - TAIL_MS - lastsMs;
      const first = fault('runner-freeze', 2_000, lastsMs, random.int(3));
      return again > lastsMs + 6_000 ? [first, fault('runner-freeze', again, lastsMs, first.index + 1)] : [first];
    },
  },
  'cancel-races': {
    about: 'cancels race completions, retries and take-overs',
    seconds: 60,
    profile: {
      ...MIXED,
      ratePerSec: 6,
      cancelShare: 0.7,
      cancelAfterMsMax: 1_500,
      shapes: { quick: 3, failing: 3, graph: 2, ticking: 1, grouped: 1 },
    },
    faults: ({ random, seconds }) =>
      every(6_000, seconds, (atMs, number) =>
        fault(
          number % 3 === 2 ? 'runner-kill' : number % 3 === 1 ? 'scheduler-term' : 'scheduler-kill',
          atMs,
          500 + random.int(1_000),
          random.int(3),
        ),
      ),
  },
  'store-down': {
    about: 'the store is down for five minutes of load, and a scheduler is killed meanwhile',
    seconds: 330,
    profile: { ...MIXED, ratePerSec: 3 },
    faults: ({ random, seconds }) => {
      const lastsMs = lasting(300_000, seconds);
      return [
        fault('store-down', 2_000, lastsMs),
        fault('scheduler-kill', 2_000 + lastsMs * 0.4, 1_500, random.int(3)),
      ];
    },
  },
  'broker-kills': {
    about: 'the broker is killed 20 times',
    seconds: 120,
    profile: MIXED,
    faults: ({ random, seconds }) =>
      every(Math.max(4_000, (seconds * 1_000 - TAIL_MS) / 20), seconds, (atMs) =>
        fault('broker-kill', atMs, 100 + random.int(900)),
      ),
  },
  'all-schedulers': {
    about: 'all schedulers are killed at once',
    seconds: 60,
    profile: MIXED,
    faults: ({ random, seconds }) =>
      every(20_000, seconds, (atMs) => fault('schedulers-kill-all', atMs, 300 + random.int(2_000))),
  },
  'rolling-restart': {
    about: 'every service is restarted, one after the other, under load; no request may fail',
    seconds: 60,
    strict: true,
    profile: MIXED,
    faults: () => [fault('rolling-restart', 1_500)],
  },
  'broken-links': {
    about:
      "connections of single services are cut or half open, each for longer than a membership or a session's fence",
    seconds: 60,
    profile: LONG_STAGES,
    faults: ({ random, seconds }) =>
      every(5_000, seconds, (atMs, number) =>
        fault(LINK_FAULTS[number % LINK_FAULTS.length] ?? 'runner-cut', atMs, lasting(9_000, seconds), random.int(3)),
      ),
  },
  'frozen-guard': {
    about: 'the guard of a runner is frozen while its stages tick',
    seconds: 60,
    profile: LONG_STAGES,
    faults: ({ random, seconds }) =>
      every(14_000, seconds, (atMs) => fault('runner-guard-freeze', atMs, lasting(12_000, seconds), random.int(3))),
  },
  'large-and-many': {
    about: 'runs of 100 stages, and many small ones, while their owners are killed',
    seconds: 60,
    profile: { ...MIXED, ratePerSec: 12, watchShare: 0.1, shapes: { quick: 20, wide: 1, grouped: 2 } },
    faults: ({ random, seconds }) =>
      every(9_000, seconds, (atMs, number) =>
        fault(number % 2 === 0 ? 'scheduler-kill' : 'broker-kill', atMs, 300 + random.int(1_000), random.int(3)),
      ),
  },
  'three-brokers': {
    about:
      'one of three brokers is killed, frozen, cut off, comes back stale; leaders step down; schedulers are killed',
    seconds: 60,
    profile: MIXED,
    cluster: { brokers: 3 },
    faults: inTurn(PEER_FAULTS, 9_000, 7_000),
  },
  'store-links': {
    about: 'connections of single services to the database are cut, half open, slow',
    seconds: 60,
    profile: MIXED,
    cluster: { store: 'mongodb' },
    faults: inTurn(STORE_LINK_FAULTS, 6_000, 9_000),
  },
  'clock-steps': {
    about: 'the wall clocks of single services are an hour ahead, then an hour behind, and right again',
    seconds: 60,
    profile: LONG_STAGES,
    cluster: { clocks: true },
    faults: inTurn(CLOCK_FAULTS, 6_000, 8_000),
  },
  'full-disks': {
    about: "the disks of runners and of the broker's store are full for a while",
    seconds: 60,
    profile: LONG_STAGES,
    cluster: { disks: true },
    faults: inTurn(DISK_FAULTS, 9_000, 6_000),
  },
  'large-runs': {
    about: 'files of half a mebibyte and runs of 2,000 stages beside small ones, while owners are killed',
    seconds: 60,
    profile: { ...MIXED, ratePerSec: 5, readShare: 0.1, shapes: { quick: 20, graph: 4, huge: 2, vast: 1 } },
    faults: inTurn(['scheduler-kill', 'broker-kill', 'gateway-kill'], 8_000, 1_500),
  },
  'logs-limit': {
    about: 'LOGS keeps next to nothing for a while, and gateways are killed meanwhile',
    seconds: 60,
    profile: { ...MIXED, watchShare: 0.7, shapes: { chatty: 4, ticking: 2, quick: 1 } },
    faults: inTurn(['logs-limit', 'gateway-kill', 'scheduler-kill'], 6_000, 8_000),
  },
  doors: {
    about: 'auth, registry and webhook-ingest are killed, frozen, cut off while people log in, publish and push',
    seconds: 60,
    profile: { ...MIXED, ratePerSec: 1, doors: { pushesPerSec: 4, publishesPerSec: 1, loginsPerSec: 0.5 } },
    // One auth: what stands in its memory between two pages of the embedded provider is nobody else's.
    cluster: { auths: 1, registries: 2, ingests: 2, runners: 2 },
    faults: inTurn(DOOR_FAULTS, 4_000, 6_000),
  },
  mixed: {
    about: 'all faults at random moments, several at a time',
    seconds: 60,
    profile: MIXED,
    faults: mixedFaults,
  },
  everything: {
    about:
      'three brokers, a database, clocks and disks: all faults that there are, at random moments, several at a time',
    seconds: 90,
    profile: { ...MIXED, ratePerSec: 2, doors: { pushesPerSec: 1, publishesPerSec: 0.5, loginsPerSec: 0.2 } },
    cluster: { brokers: 3, store: 'mongodb', clocks: true, disks: true },
    faults: mixedFaults,
  },
};

/** One kind after the other, from a random one on, at random processes. */
function inTurn(kinds: readonly FaultKind[], everyMs: number, lastsMs: number): Schedule['faults'] {
  return ({ random, seconds }) => {
    const first = random.int(kinds.length);
    return every(everyMs, seconds, (atMs, number) =>
      fault(
        kinds[(first + number) % kinds.length] ?? 'broker-kill',
        atMs,
        lasting(Math.round(lastsMs * random.between(0.4, 1.4)), seconds),
        random.int(3),
      ),
    );
  };
}

function every(periodMs: number, seconds: number, make: (atMs: number, number: number) => Fault): Fault[] {
  const faults: Fault[] = [];
  for (let atMs = 2_000; atMs < seconds * 1_000 - TAIL_MS; atMs += periodMs) faults.push(make(atMs, faults.length));
  return faults;
}

/** How long a fault lasts, in milliseconds: mostly short, now and then longer than what notices it. */
const LASTS: Readonly<Record<string, readonly [low: number, high: number]>> = {
  kill: [100, 4_000],
  term: [100, 2_000],
  freeze: [300, 9_000],
  all: [200, 3_000],
  down: [1_000, 12_000],
  slow: [2_000, 10_000],
  cut: [500, 9_000],
  open: [500, 9_000],
  clock: [1_000, 9_000],
  full: [1_000, 8_000],
  limit: [2_000, 9_000],
  partition: [500, 9_000],
  stale: [1_000, 6_000],
};
const MEAN_GAP_MS = 3_000;

/** A process is in one fault at a time; so are the brokers together, and the store. */
function mixedFaults({ random, seconds, kinds, countOf }: FaultsOptions): Fault[] {
  const faults: Fault[] = [];
  const busyUntil = new Map<string, number>();
  for (let atMs = 1_500; atMs < seconds * 1_000 - TAIL_MS; atMs += 200 + random.exponential(MEAN_GAP_MS)) {
    const kind = random.pick(kinds);
    const index = random.int(3);
    const [low, high] = LASTS[kind.slice(kind.lastIndexOf('-') + 1)] ?? [100, 3_000];
    const lastsMs = Math.round(low + (high - low) * random.next() ** 2);
    const service = serviceOf(kind);
    const other = kind.slice(0, kind.indexOf('-')).replace('peer', 'broker');
    const targets =
      kind === 'schedulers-kill-all'
        ? Array.from({ length: countOf('scheduler') }, (_, one) => `scheduler ${one}`)
        : [service === undefined ? other : `${service} ${index % countOf(service)}`];
    // SIGTERM may take its time.
    const freeAt = atMs + lastsMs + (kind.endsWith('-term') ? 12_000 : 500);
    if (targets.some((target) => (busyUntil.get(target) ?? 0) > atMs)) continue;
    for (const target of targets) busyUntil.set(target, freeAt);
    faults.push({ kind, atMs: Math.round(atMs), index, lastsMs });
  }
  return faults;
}
