/**
 * What can happen to a cluster, each with its beginning and its end, and the log of what did happen. The verbs are the
 * cluster's; the moments are the schedule's.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Cluster } from '../cluster/cluster.ts';
import type { ServiceName, ServiceProcess } from '../cluster/service-process.ts';
import { descendantsOf, lives } from '../support/processes.ts';

export const FAULT_KINDS = [
  'scheduler-kill',
  'scheduler-term',
  'scheduler-freeze',
  'schedulers-kill-all',
  'runner-kill',
  'runner-term',
  'runner-freeze',
  'gateway-kill',
  'gateway-term',
  'gateway-freeze',
  'broker-kill',
  'broker-freeze',
  'store-down',
  'store-slow',
  'rolling-restart',
  'scheduler-cut',
  'scheduler-half-open',
  'runner-cut',
  'runner-half-open',
  'runner-guard-freeze',
  'gateway-cut',
  'gateway-half-open',
] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];

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

/** Whether a fault may cost runners their leases: their own ends, and a broker that is silent for long. */
export function mayLoseAttempts(faults: readonly Fault[], leaseSecs: number): boolean {
  return faults.some(
    ({ kind, lastsMs }) =>
      kind.startsWith('runner-') ||
      kind === 'rolling-restart' ||
      // Clients need a while to notice, to dial and to renew; together with the outage it must stay below the fence.
      (kind.startsWith('broker-') && lastsMs > (leaseSecs - 3) * 1_000 - 8_000),
  );
}

export class FaultRunner {
  readonly done: DoneFault[] = [];
  readonly #cluster: Cluster;
  readonly #say: (line: string) => void;
  #halfOpened = 0;

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
    const service = kind.slice(0, kind.indexOf('-'));
    if (service === 'broker' || service === 'store') return [];
    const all = this.#cluster.of(service as ServiceName);
    return all.slice(index % all.length, (index % all.length) + 1);
  }

  async #inflict({ kind, lastsMs }: Fault, targets: readonly ServiceProcess[]): Promise<void> {
    const { broker, store } = this.#cluster;
    const links = targets.flatMap(({ name }) => this.#cluster.links.get(name) ?? []);
    switch (kind) {
      case 'broker-kill':
        await broker.kill();
        await pause(lastsMs);
        return await broker.restart();
      case 'broker-freeze':
        broker.pause();
        await pause(lastsMs);
        return broker.resume();
      case 'store-down':
        await store.down();
        await pause(lastsMs);
        return await store.heal();
      case 'store-slow':
        await store.slow(SLOW_STORE_MS);
        await pause(lastsMs);
        return await store.heal();
      case 'rolling-restart':
        return await this.#cluster.rollingRestart();
      case 'scheduler-cut':
      case 'runner-cut':
      case 'gateway-cut':
        for (const link of links) link.shut();
        await pause(lastsMs);
        for (const link of links) link.cut();
        return;
      case 'scheduler-half-open':
      case 'runner-half-open':
      case 'gateway-half-open':
        for (const link of links) link.blackhole(this.#direction());
        await pause(lastsMs);
        for (const link of links) link.cut();
        return;
      case 'runner-guard-freeze':
        return await freezeGuards(targets, lastsMs);
      case 'scheduler-freeze':
      case 'runner-freeze':
      case 'gateway-freeze':
        for (const one of targets) one.freeze();
        await pause(lastsMs);
        for (const one of targets) one.resume();
        return;
      default:
        await Promise.all(targets.map((one) => one.kill(kind.endsWith('-term') ? 'SIGTERM' : 'SIGKILL')));
        await pause(lastsMs);
        // Not awaited until it is ready: without a broker or a store it waits, as it should.
        for (const one of targets) if (!one.lives) one.start();
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
