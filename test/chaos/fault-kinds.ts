/**
 * The names of what can happen to a cluster: who is hit, and what is done to them. What a cluster has not been made for (three
 * brokers, disks that can be filled) cannot happen to it.
 */
import type { Cluster } from '../cluster/cluster.ts';
import type { ServiceName } from '../cluster/service-process.ts';

const PROCESS_VERBS = ['kill', 'term', 'freeze', 'cut', 'half-open'] as const;
const STORE_VERBS = ['store-cut', 'store-half-open', 'store-slow'] as const;

export const FAULT_KINDS = [
  ...each('scheduler', [...PROCESS_VERBS, ...STORE_VERBS, 'clock']),
  'schedulers-kill-all',
  ...each('runner', [...PROCESS_VERBS, 'clock', 'guard-freeze', 'disk-full']),
  ...each('gateway', [...PROCESS_VERBS, ...STORE_VERBS, 'clock']),
  ...each('auth', [...PROCESS_VERBS, ...STORE_VERBS]),
  ...each('registry', [...PROCESS_VERBS, ...STORE_VERBS]),
  ...each('ingest', [...PROCESS_VERBS, ...STORE_VERBS]),
  /** The only broker, or all three. */
  ...each('broker', ['kill', 'freeze', 'disk-full']),
  /** One of three. */
  ...each('peer', ['kill', 'freeze', 'partition', 'stepdown', 'stale']),
  'store-down',
  'store-slow',
  'logs-limit',
  'rolling-restart',
] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];

function each<Who extends string, What extends string>(who: Who, verbs: readonly What[]): `${Who}-${What}`[] {
  return verbs.map((verb): `${Who}-${What}` => `${who}-${verb}`);
}

const SERVICES: Readonly<Record<string, ServiceName>> = {
  scheduler: 'scheduler',
  runner: 'runner',
  gateway: 'gateway',
  auth: 'auth',
  registry: 'registry',
  ingest: 'webhook-ingest',
};

/** Which service's processes it hits, one at a time; undefined: something else. */
export function serviceOf(kind: FaultKind): ServiceName | undefined {
  return SERVICES[kind.slice(0, kind.indexOf('-'))];
}

/** What is done, without who it is done to. */
export function verbOf(kind: FaultKind): string {
  return kind.slice(kind.indexOf('-') + 1);
}

export function canHappen(kind: FaultKind, cluster: Cluster): boolean {
  const service = serviceOf(kind);
  const verb = verbOf(kind);
  if (service !== undefined && cluster.of(service).length === 0) return false;
  if (kind.startsWith('peer-')) return cluster.brokers.peers !== undefined;
  if (kind === 'broker-disk-full') return cluster.brokers.disk !== undefined;
  if (verb === 'disk-full') return cluster.disks.size > 0;
  if (verb === 'clock') return cluster.hasClocks;
  if (verb.startsWith('store-')) return cluster.storeLinks.size > 0;
  if (verb === 'cut' || verb === 'half-open') return cluster.links.size > 0;
  return true;
}
