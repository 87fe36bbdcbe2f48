/**
 * How long an owner holds its event loop: at 100,000 live runs, 32,000 keys, 10,000 sets of labels and 1,000 runners nothing may
 * take 20 ms (a membership lives 6 s, and one loop serves every partition of a scheduler). Each step is the longest of several.
 */
import { setImmediate } from 'node:timers/promises';
import type { CreateRequest } from '@penstock/bus';
import { newRunId } from '@penstock/run';
import {
  Definitions,
  Dispatch,
  LiveRun,
  Partition,
  readScheduler,
  type PartitionPorts,
} from '@penstock/scheduler/testing';
import type { Meter } from '@penstock/telemetry/metrics';
import { watchCollections, type Collection } from './collections.ts';

const RUNS = 100_000;
const KEYS = 32_000;
const LABEL_SETS = 10_000;
const RUNNERS = 1_000;
const GONE = 20;
const LIMIT_MS = 20;

export async function benchOwnerLoop(): Promise<string[]> {
  const collected = await watchCollections();
  const measured = [...(await runnersGone()), ...(await manyKeys()), ...(await manyLabelSets())];
  const collections = await collected();
  return measured.map((each) => line(each, collections));
}

/** One step: of this thread's own time, so that what else the machine does says nothing, and when it was. */
interface Turn {
  readonly cpuMs: number;
  readonly from: number;
  readonly to: number;
}

interface Measured {
  readonly what: string;
  readonly turns: readonly Turn[];
}

/**
 * The longest of these steps, without what was collected in them, which is told beside it: the collector chooses its moments. A thread's time
 * may be told in ticks of some 4 ms, and the clock on the wall goes on while others have the processor: a step's work is no more than either says.
 */
function line({ what, turns }: Measured, collections: readonly Collection[]): string {
  let work = 0;
  let collected = { wallMs: 0, cpuMs: 0 };
  let next = 0;
  for (const { cpuMs, from, to } of turns) {
    const gc = { wallMs: 0, cpuMs: 0 };
    while ((collections[next]?.from ?? Infinity) < from) next += 1;
    for (let each = collections[next]; each !== undefined && each.from < to; each = collections[next]) {
      gc.wallMs += each.to - each.from;
      gc.cpuMs += each.cpuMs;
      next += 1;
    }
    work = Math.max(work, Math.min(cpuMs - gc.cpuMs, to - from - gc.wallMs));
    if (gc.cpuMs > collected.cpuMs) collected = gc;
  }
  const mean = turns.reduce((sum, { cpuMs }) => sum + cpuMs, 0) / turns.length;
  return `${what}: ${work.toFixed(1)} ms of work at the longest of ${turns.length} turns (${work < LIMIT_MS ? 'below' : 'ABOVE'} ${LIMIT_MS} ms), ${collected.cpuMs.toFixed(1)} ms of garbage collection at most (${collected.wallMs.toFixed(1)} by the clock); ${mean.toFixed(3)} ms on average`;
}

/** A turn of the loop for itself: between two of them the collector does a part of what it has to do, as it does in a scheduler. */
async function timed(act: () => void): Promise<Turn> {
  await setImmediate();
  const before = process.threadCpuUsage();
  const from = performance.now();
  act();
  const { user, system } = process.threadCpuUsage(before);
  return { cpuMs: (user + system) / 1000, from, to: performance.now() };
}

/** A partition with nothing behind it: each commit is stored in the next turn. */
class Bare {
  readonly dispatch = new Dispatch();
  readonly partition: Partition;
  boot = 1_000;
  #ids = 0;
  #sequence = 0;
  #underWay = false;

  constructor() {
    const ports: PartitionPorts = {
      now: () => 1_800_000_000_000 + this.boot,
      bootNow: () => this.boot,
      newCommitId: () => String(++this.#ids),
      append: () => {
        this.#underWay = true;
      },
      mayAct: () => true,
      mayDeclareLoss: () => true,
      publishEvents: () => {},
      counted: () => {},
      sendJob: () => {},
      sendStop: () => {},
      release: () => {},
      isStored: (_id, then) => then(false),
      storedRuns: (_ids, then) => then(new Set()),
      storedStanding: (_id, then) => then(null),
      forgetLogs: () => {},
      headInStore: (_of, then) => then(null),
      closeLog: (_log, _stands, then) => then(1),
      projectSoon: () => {},
      warn: () => {},
      broken: (error) => {
        throw error;
      },
    };
    this.partition = new Partition(
      {
        partition: 0,
        member: 'bench',
        epoch: 1,
        queueTimeoutMs: 86_400_000,
        logBytesMax: 1_000,
        artifactExpireMs: 86_400_000,
        workspaceGraceMs: 15_000,
        liveRunsPerKeyMax: RUNS,
        approvalMs: 86_400_000,
        heldMax: 100,
      },
      ports,
      {
        dispatch: this.dispatch,
        definitions: new Definitions(),
        readRun: (_id, then) => then('unavailable'),
        readText: (_request, then) => then(new Definitions()),
        load: {
          liveRuns: 0,
          liveRunsMax: 2 * RUNS,
          liveBytes: 0,
          liveBytesMax: Number.POSITIVE_INFINITY,
          journalUsed: 0,
          unprojectedBytes: 0,
        },
      },
    );
  }

  /** Each slice is a turn. */
  async open(runs: readonly LiveRun[] = []): Promise<Turn[]> {
    const turns: Turn[] = [];
    const opening = this.partition.opening({ sequence: 0, commitNumber: 0, runs, neverOwned: true });
    for (let isOpen = false; !isOpen;) turns.push(await timed(() => (isOpen = opening.next().done === true)));
    return turns;
  }

  create(key: string, yaml: string): void {
    const random = Buffer.alloc(10);
    random.writeUInt32BE(++this.#ids, 4);
    const request: CreateRequest = {
      runId: newRunId({ now: 1_800_000_000_000, key, random }),
      tenant: 'service',
      key,
      yaml,
      origin: { kind: 'api' },
    };
    this.partition.create(request, () => {});
  }

  /** One commit after the other, each in a turn of its own. */
  async settle(): Promise<Turn[]> {
    const turns: Turn[] = [];
    while (this.#underWay) {
      this.#underWay = false;
      turns.push(await timed(() => this.partition.acknowledged(++this.#sequence)));
    }
    return turns;
  }

  /** Ticks until nothing is left to do at once. */
  async ticks(): Promise<Turn[]> {
    const turns: Turn[] = [];
    do {
      turns.push(await timed(() => this.partition.tick()));
      turns.push(...(await this.settle()));
    } while ((this.partition.nextWake() ?? Infinity) <= this.boot && turns.length < 100_000);
    return turns;
  }

  lease(runner: string, labels: readonly string[], credits = 0): void {
    const lease = { runner, session: `${runner}-s`, labels, slots: credits, attempts: [] };
    this.dispatch.sessionSeen(lease);
    this.partition.leaseSeen(lease);
    this.dispatch.addCredits(this.boot, {
      runner,
      session: lease.session,
      credits: Array.from({ length: credits }, (_, index) => index + 1),
    });
  }
}

const CHAIN =
  "pipeline: {name: p}\nstages: {a: {run: 'true'}, b: {run: 'true', after: a}, c: {run: 'true', after: b}}\n";

async function runnersGone(): Promise<Measured[]> {
  const bare = new Bare();
  await bare.open();
  for (let runner = 0; runner < RUNNERS; runner++) bare.lease(`r${runner}`, [], 100);
  for (let run = 0; run < RUNS; run++) {
    bare.create(`k${run % KEYS}`, CHAIN);
    if (run % 256 === 0) await bare.settle();
  }
  await bare.settle();
  await bare.ticks();
  const quiet: Turn[] = [];
  for (let second = 0; second < 70; second++) {
    bare.boot += 1_000;
    quiet.push(...(await bare.ticks()));
  }
  for (let runner = GONE; runner < RUNNERS; runner++) bare.lease(`r${runner}`, []);
  const lost: Turn[] = [];
  for (let runner = 0; runner < GONE; runner++) {
    bare.dispatch.sessionGone(`r${runner}-s`);
    lost.push(await timed(() => bare.partition.sessionLost(`r${runner}-s`, `r${runner}`)));
  }
  lost.push(...(await bare.settle()));
  bare.boot += 16_000;
  lost.push(...(await bare.ticks()));
  const reads: Turn[] = [];
  for (let read = 0; read < 5; read++)
    reads.push(await timed(() => bare.partition.get({ runIds: [], tenants: ['service'], newest: 100 }, () => {})));
  const samples: Turn[] = [];
  for (let sample = 0; sample < 100; sample++) {
    samples.push(await timed(() => bare.partition.sampleInvariants()));
    samples.push(await timed(() => bare.dispatch.sampleInvariants()));
  }
  const taken = restoredAgain(bare.partition.liveRuns);
  const closed = await timed(() => bare.partition.close());
  const successor = new Bare();
  const opened = await successor.open(taken);
  // What it offers and takes up goes on after it is open.
  const afterwards = await successor.ticks();
  return [
    { what: `${RUNS} live runs: a slice of their take-over`, turns: opened },
    { what: `${RUNS} live runs: a turn after their take-over`, turns: afterwards },
    { what: `${RUNS} live runs: they are forgotten`, turns: [closed] },
    { what: `${RUNS} live runs: a second in which nothing happens`, turns: quiet },
    { what: `${RUNS} live runs: ${GONE} of ${RUNNERS} runners gone for good`, turns: lost },
    { what: `${RUNS} live runs: the newest 100 of a tenant`, turns: reads },
    { what: `${RUNS} live runs: a sample of the invariants`, turns: samples },
  ];
}

/** As a successor finds them. */
function restoredAgain(runs: Iterable<LiveRun>): LiveRun[] {
  const settings = { queueTimeoutMs: 86_400_000 };
  return Array.from(runs, ({ id, definition, events, committedSequence }) =>
    LiveRun.restore(id, definition, { events: [...events], sequence: committedSequence }, settings),
  );
}

/** One stage of each key waits; every key's pass is ahead of the others in its turn. */
async function manyKeys(): Promise<Measured[]> {
  const dispatch = new Dispatch();
  const wait = (key: string): void => {
    let waits = true;
    dispatch.offer({
      key,
      priority: 0,
      labels: [],
      labelSet: '',
      count: 1,
      waits: () => waits,
      since: () => undefined,
      boundTo: () => undefined,
      grant: () => {
        waits = false;
        return true;
      },
      rest() {
        return this;
      },
    });
  };
  dispatch.sessionSeen({ runner: 'r', session: 's', labels: [], slots: 1, attempts: [] });
  const grants: Turn[] = [];
  for (let round = 0; round < 2; round++) for (let key = 0; key < KEYS; key++) wait(`k${key}`);
  for (let credit = 1; credit <= KEYS; credit++) {
    dispatch.addCredits(0, { runner: 'r', session: 's', credits: [credit] });
    grants.push(await timed(() => dispatch.match(0)));
    if (credit % 4_000 === 0) dispatch.forgetIdle(credit);
  }
  return [
    { what: `${KEYS} keys: a grant`, turns: grants },
    { what: `${KEYS} keys: the clean-up of a second`, turns: [await timed(() => dispatch.forgetIdle(1))] },
  ];
}

async function manyLabelSets(): Promise<Measured[]> {
  const dispatch = new Dispatch();
  const waiting = new Set<string>();
  const offer = (labels: readonly string[], least = ''): void => {
    const labelSet = labels.join(',') + least;
    waiting.add(labelSet);
    dispatch.offer({
      key: 'k',
      priority: 0,
      labels,
      labelSet,
      count: 1,
      waits: () => waiting.has(labelSet),
      since: () => undefined,
      boundTo: () => undefined,
      grant: () => waiting.delete(labelSet),
      rest() {
        return this;
      },
    });
  };
  for (let runner = 0; runner < RUNNERS; runner++) {
    dispatch.sessionSeen({
      runner: `r${runner}`,
      session: `s${runner}`,
      labels: ['linux', `only-${runner}`],
      slots: 1,
      attempts: [],
    });
    dispatch.addCredits(0, { runner: `r${runner}`, session: `s${runner}`, credits: [1] });
  }
  for (let set = 0; set < LABEL_SETS; set++) offer(['linux', `nobody-${set}`]);
  const first = await timed(() => dispatch.match(0));
  const matches: Turn[] = [];
  for (let round = 0; round < 200; round++) {
    offer(['linux', `only-${round}`]);
    matches.push(await timed(() => dispatch.match(0)));
  }
  const noticed = await timed(() => dispatch.demand());
  const scrapes = [await timed(figuresOf(dispatch)), await timed(figuresOf(dispatch))];
  // Each runner has the one or the other label, and none has both.
  for (let runner = 0; runner < RUNNERS; runner++)
    dispatch.sessionSeen({
      runner: `r${runner}`,
      session: `s${runner}`,
      labels: [runner % 2 === 0 ? 'even' : 'odd'],
      slots: 1,
      attempts: [],
    });
  for (let set = 0; set < LABEL_SETS; set++) offer(['even', 'odd'], `least-${set}`);
  for (let scrape = 0; scrape < 5; scrape++) scrapes.push(await timed(figuresOf(dispatch)));
  return [
    { what: `${LABEL_SETS} sets of labels, ${RUNNERS} runners: the figures of the queues`, turns: scrapes },
    { what: `${LABEL_SETS} sets of labels, ${RUNNERS} runners: the first match`, turns: [first] },
    { what: `${LABEL_SETS} sets of labels, ${RUNNERS} runners: a match`, turns: matches },
    { what: `${LABEL_SETS} sets of labels: the demand`, turns: [noticed] },
  ];
}

/** As a scrape reads them: one read is one turn's. */
function figuresOf(dispatch: Dispatch): () => void {
  let read = (): void => {};
  const host = {
    dispatch,
    owners: () => [],
    leases: () => [],
    tenantOf: () => undefined,
    wallNow: () => 1_800_000_000_000,
  };
  const gauge: Meter['gauge'] = (name, readings) => {
    if (name === 'penstock_queue_demand') read = () => void readings();
  };
  readScheduler({ add: () => {}, observe: () => {}, gauge }, host);
  return () => read();
}
