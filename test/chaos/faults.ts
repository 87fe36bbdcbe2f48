/**
 * What can happen to a cluster, each with its beginning and its end, and the log of what did happen. The verbs are the
 * cluster's; the moments are the schedule's.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { buckets, streams } from '@penstock/bus';
import { limitStream, type TestBroker, type TestCluster } from '@penstock/testkit';
import type { Cluster } from '../cluster/cluster.ts';
import type { Link } from '../cluster/links.ts';
import type { ServiceProcess } from '../cluster/service-process.ts';
import { descendantsOf, lives } from '../support/processes.ts';
import { CLOCK_STEP_MS } from './clock.ts';
import { serviceOf, verbOf, type FaultKind } from './fault-kinds.ts';

export interface Fault {
  readonly kind: FaultKind;
  /** Since the beginning of the load. */
  readonly atMs: number;
  /** Which of the service's processes; of no meaning for broker and store. */
  readonly index: number;
  /** Until it is started again, woken or healed. */
  readonly lastsMs: number;
}

export interface DoneFault extends Fault {
  /** Milliseconds since 1970. */
  readonly begunAt: number;
  endedAt: number;
  /** Member ids or sessions of the processes that it hit. */
  readonly identities: readonly string[];
  /** Ids of runners by name, for those that it hit. */
  readonly targets: readonly string[];
}

/** A store that answers, so late. */
const SLOW_STORE_MS = 300;
/** What a few chatty stages write: then the oldest chunks go. */
const LOGS_BYTES = 128 * 1024;
/** Those whose leader a run waits for. */
const LED = [streams.journal, streams.logs, streams.deliveries, ...Object.values(buckets).map((name) => `KV_${name}`)];

/** Whether a fault may cost runners their leases: their own ends, and a broker that is silent for long. */
export function mayLoseAttempts(faults: readonly Fault[], leaseSecs: number): boolean {
  return faults.some(({ kind, lastsMs }) => {
    // A step of the clock, and a disk without room, cost no lease.
    if (kind === 'runner-clock' || kind === 'runner-disk-full') return false;
    // Renewals that a broker took while its disk was full may be gone after its restart.
    if (kind.startsWith('runner-') || kind === 'rolling-restart' || kind === 'broker-disk-full') return true;
    // Clients need a while to notice, to dial and to renew; together with the outage it must stay below the fence.
    return /^(broker|peer)-/.test(kind) && lastsMs > (leaseSecs - 3) * 1_000 - 8_000;
  });
}

export class FaultRunner {
  readonly done: DoneFault[] = [];
  readonly #cluster: Cluster;
  readonly #say: (line: string) => void;
  #halfOpened = 0;
  #clockSteps = 0;

  constructor(cluster: Cluster, say: (line: string) => void) {
    this.#cluster = cluster;
    this.#say = say;
  }

  /** Resolves when every fault has begun and ended. */
  async run(faults: readonly Fault[]): Promise<void> {
    const began = performance.now();
    await Promise.all(
      faults.map(async (fault) => {
        await pause(Math.max(0, fault.atMs - (performance.now() - began)));
        await this.#do(fault);
      }),
    );
  }

  async #do(fault: Fault): Promise<void> {
    const targets = this.#targetsOf(fault);
    const done: DoneFault = {
      ...fault,
      begunAt: Date.now(),
      endedAt: 0,
      identities: targets.flatMap((one) => one.identities.filter(({ pid }) => pid === one.pid).map(({ id }) => id)),
      targets: targets.map(({ name }) => name),
    };
    this.done.push(done);
    this.#say(`${new Date().toISOString()} ${fault.kind} ${done.targets.join(' ')} for ${fault.lastsMs} ms`);
    await this.#inflict(fault, targets);
    done.endedAt = Date.now();
  }

  /** One after the other: what is lost on the way out looks otherwise than what is lost on the way back. */
  #direction(): 'to-broker' | 'to-client' {
    this.#halfOpened += 1;
    return this.#halfOpened % 2 === 1 ? 'to-client' : 'to-broker';
  }

  #targetsOf({ kind, index }: Fault): readonly ServiceProcess[] {
    if (kind === 'schedulers-kill-all') return this.#cluster.of('scheduler');
    if (kind === 'rolling-restart') return this.#cluster.processes;
    const service = serviceOf(kind);
    if (service === undefined) return [];
    const all = this.#cluster.of(service);
    return all.slice(index % all.length, (index % all.length) + 1);
  }

  async #inflict(fault: Fault, targets: readonly ServiceProcess[]): Promise<void> {
    const { kind, lastsMs } = fault;
    const { brokers, store } = this.#cluster;
    if (kind === 'rolling-restart') return await this.#cluster.rollingRestart();
    if (kind === 'logs-limit') return await this.#limitLogs(lastsMs);
    if (kind.startsWith('store-')) {
      await (kind === 'store-down' ? store.down() : store.slow(SLOW_STORE_MS));
      await pause(lastsMs);
      return await store.heal();
    }
    if (kind === 'broker-disk-full') return await fillBroker(brokers.servers, brokers.disk, lastsMs);
    if (kind.startsWith('broker-')) return await breakBrokers(brokers.servers, verbOf(kind), lastsMs);
    if (kind.startsWith('peer-')) return await breakPeer(brokers.peers, fault);
    await this.#hit(targets, verbOf(kind), lastsMs);
  }

  async #hit(targets: readonly ServiceProcess[], verb: string, lastsMs: number): Promise<void> {
    const { links, storeLinks, disks } = this.#cluster;
    const linksOf = (all: ReadonlyMap<string, Link>): Link[] => targets.flatMap(({ name }) => all.get(name) ?? []);
    switch (verb) {
      case 'cut':
        return await forAWhile(linksOf(links), lastsMs, (link) => link.shut());
      case 'half-open':
        return await forAWhile(linksOf(links), lastsMs, (link) => link.blackhole(this.#direction()));
      case 'store-cut':
        return await forAWhile(linksOf(storeLinks), lastsMs, (link) => link.shut());
      case 'store-half-open':
        return await forAWhile(linksOf(storeLinks), lastsMs, (link) => link.blackhole(this.#direction()));
      case 'store-slow':
        return await forAWhile(linksOf(storeLinks), lastsMs, (link) => link.slow(SLOW_STORE_MS));
      case 'guard-freeze':
        return await freezeGuards(targets, lastsMs);
      case 'clock': {
        // Forward and back by turns.
        this.#clockSteps += 1;
        const byMs = this.#clockSteps % 2 === 1 ? CLOCK_STEP_MS : -CLOCK_STEP_MS;
        for (const { name } of targets) this.#cluster.stepClock(name, byMs);
        await pause(lastsMs);
        for (const { name } of targets) this.#cluster.stepClock(name, 0);
        return;
      }
      case 'disk-full':
        for (const { name } of targets) disks.get(name)?.fill();
        await pause(lastsMs);
        for (const { name } of targets) disks.get(name)?.empty();
        return;
      case 'freeze':
        for (const one of targets) one.freeze();
        await pause(lastsMs);
        for (const one of targets) one.resume();
        return;
      default:
        await Promise.all(targets.map((one) => one.kill(verb === 'term' ? 'SIGTERM' : 'SIGKILL')));
        await pause(lastsMs);
        // Not awaited until it is ready: without a broker or a store it waits, as it should.
        for (const one of targets) if (!one.lives) one.start();
    }
  }

  /** Without a leader of the stream nothing is limited, which is said. */
  async #limitLogs(lastsMs: number): Promise<void> {
    const { url } = this.#cluster.brokers;
    try {
      const before = await limitStream(url, streams.logs, LOGS_BYTES);
      await pause(lastsMs);
      await limitStream(url, streams.logs, before);
    } catch (error) {
      this.#say(`LOGS could not be limited, or not unlimited: ${String(error)}`);
    }
  }
}

async function forAWhile(links: readonly Link[], lastsMs: number, breakOne: (link: Link) => void): Promise<void> {
  for (const link of links) breakOne(link);
  await pause(lastsMs);
  for (const link of links) link.cut();
}

async function breakBrokers(brokers: readonly TestBroker[], verb: string, lastsMs: number): Promise<void> {
  const isKill = verb === 'kill';
  await Promise.all(brokers.map((broker) => (isKill ? broker.kill() : broker.pause())));
  await pause(lastsMs);
  await Promise.all(brokers.map((broker) => (isKill ? broker.restart() : broker.resume())));
}

/** A nats-server whose disk was full goes on only when it is started again (docs/operating.md). */
async function fillBroker(
  brokers: readonly TestBroker[],
  disk: Cluster['brokers']['disk'],
  lastsMs: number,
): Promise<void> {
  disk?.fill();
  await pause(lastsMs);
  disk?.empty();
  for (const broker of brokers) {
    await broker.kill();
    await broker.restart();
  }
}

async function breakPeer(peers: TestCluster | undefined, { kind, index, lastsMs }: Fault): Promise<void> {
  const peer = peers?.brokers[index % peers.brokers.length];
  if (peers === undefined || peer === undefined) return;
  const stepDown = async (): Promise<unknown> => await Promise.all(LED.map((stream) => peers.stepDown(stream)));
  switch (verbOf(kind)) {
    case 'kill':
      return await breakBrokers([peer], 'kill', lastsMs);
    case 'freeze':
      return await breakBrokers([peer], 'freeze', lastsMs);
    case 'partition':
      peers.isolate(peer);
      await pause(lastsMs);
      return peers.rejoin(peer);
    case 'stepdown':
      await stepDown();
      return await pause(lastsMs);
    default: {
      // A follower that comes back without the last seconds, and a leader that goes at that moment.
      const leader = await peers.leaderOf(streams.journal);
      const follower = peer === leader ? peers.brokers.find((broker) => broker !== leader) : peer;
      await breakBrokers([follower ?? peer], 'kill', lastsMs);
      await stepDown();
    }
  }
}

/** The guards alone: their runners go on, and may end them. */
async function freezeGuards(runners: readonly ServiceProcess[], lastsMs: number): Promise<void> {
  const guards = runners.flatMap(({ pid }) =>
    descendantsOf(pid).filter(({ command }) => command.includes('guard.bash') && !command.includes('setpriv')),
  );
  for (const guard of guards) if (lives(guard)) process.kill(guard.pid, 'SIGSTOP');
  await pause(lastsMs);
  for (const guard of guards) if (lives(guard)) process.kill(guard.pid, 'SIGCONT');
}
