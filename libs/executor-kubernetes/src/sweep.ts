/**
 * Pods that nobody holds: those of earlier sessions of this runner, before a new one begins, and what a runner that never came back has
 * left. None is deleted by force, and none of another runner that may still be looked after.
 */
import { bootMs, pause } from '@penstock/async';
import type { V1Pod } from '@kubernetes/client-node';
import type { Cluster } from './cluster/cluster.ts';
import { ClusterError, NoCluster } from './errors.ts';
import { LEASE_ANNOTATION, notOf, OF_STAGES, selectorOfPod, selectorOfRunner } from './pod/labels.ts';
import { stateOf } from './pod/pod-state.ts';

const LOOK_MS = 500;
/** A Pod that has ended, or should have, for so long is looked after by nobody. */
const ORPHAN_MS = 10 * 60_000;
const REFUSALS = new Set([401, 403, 404]);

export interface EarlierPods {
  readonly cluster: Cluster;
  readonly runnerId: string;
  /** Of this runner's leases, where a Pod does not say it. */
  readonly leaseMs: number;
  readonly warn: (error: unknown, message: string) => void;
  /** The names of Pods that are taken up by the new session. */
  readonly kept?: readonly string[] | undefined;
}

/**
 * Resolves when nothing of an earlier session of this runner can run any more (P14, P36): its Pods' stages are terminated, or have had no
 * answer for a lease. Nobody answers them but the process that is dead.
 * @throws NoCluster where the cluster refuses us
 */
export async function endEarlierPods(earlier: EarlierPods): Promise<void> {
  const { runnerId, kept = [] } = earlier;
  const ofRunner = selectorOfRunner(runnerId);
  await endPods(earlier, (name) => !kept.includes(name), kept.length === 0 ? ofRunner : `${ofRunner},${notOf(kept)}`);
}

/** One of them. @throws NoCluster where the cluster refuses us */
export async function endEarlierPod(earlier: EarlierPods, name: string): Promise<void> {
  await endPods(earlier, (each) => each === name, selectorOfPod(name));
}

async function endPods(
  { cluster, runnerId, leaseMs, warn }: EarlierPods,
  isMeant: (name: string) => boolean,
  secrets: string,
): Promise<void> {
  const begun = bootMs();
  const deleted = new Set<string>();
  for (let tries = 0; ; tries += 1) {
    try {
      const { pods: all } = await cluster.listPods(selectorOfRunner(runnerId));
      const pods = all.filter((pod) => isMeant(nameOf(pod)));
      for (const name of pods.map(nameOf).filter((each) => !deleted.has(each))) {
        await cluster.deletePod(name, 1);
        deleted.add(name);
      }
      if (tries === 0) await cluster.deleteSecrets(secrets);
      const untilMs = Math.max(0, ...pods.filter(mayRun).map((pod) => leaseOf(pod) ?? leaseMs));
      if (bootMs() - begun >= untilMs) return;
    } catch (error) {
      if (error instanceof ClusterError && REFUSALS.has(error.code))
        throw new NoCluster(`the namespace of the stages cannot be used: ${error.message}`, { cause: error });
      if (tries === 0)
        warn(error, 'the Pods of earlier sessions cannot be looked at; what they run ends by itself within a lease');
      if (bootMs() - begun >= leaseMs) return;
    }
    await pause(LOOK_MS);
  }
}

/**
 * What has been left in the namespace by whomever, for long. How long is counted here, from when it was first seen: by when it began the
 * clock of this machine, should it be an hour ahead, would take another runner's stages for left.
 */
export class OrphanSweep {
  readonly #cluster: Cluster;
  readonly #isHeld: (name: string) => boolean;
  /** Since when each is seen as it is. */
  #seenSince: ReadonlyMap<string, number> = new Map();

  /** `isHeld`: of this session. */
  constructor(cluster: Cluster, isHeld: (name: string) => boolean) {
    this.#cluster = cluster;
    this.#isHeld = isHeld;
  }

  /** `now`: milliseconds of the boot clock. */
  async sweep(now: number): Promise<void> {
    const { pods } = await this.#cluster.listPods(OF_STAGES);
    const left = pods.filter((pod) => !this.#isHeld(nameOf(pod)) && !pod.metadata?.deletionTimestamp);
    const seen = left.map((pod) => ({ pod, since: this.#seenSince.get(stateKey(pod)) ?? now }));
    this.#seenSince = new Map(seen.map(({ pod, since }) => [stateKey(pod), since]));
    for (const { pod, since } of seen)
      if (now - since > (hasEnded(pod) ? 0 : lastsMs(pod)) + ORPHAN_MS) await this.#cluster.deletePod(nameOf(pod), 1);
  }
}

function stateKey(pod: V1Pod): string {
  return `${pod.metadata?.uid} ${hasEnded(pod)}`;
}

function hasEnded({ status }: V1Pod): boolean {
  return status?.containerStatuses?.[0]?.state?.terminated !== undefined;
}

function lastsMs({ spec }: V1Pod): number {
  return (spec?.activeDeadlineSeconds ?? 0) * 1000;
}

/** A stage begins through its line only, and a line only where the container is seen running. */
function mayRun(pod: V1Pod): boolean {
  return stateOf(pod).stage.kind === 'running';
}

function leaseOf({ metadata }: V1Pod): number | undefined {
  const lease = Number(metadata?.annotations?.[LEASE_ANNOTATION]);
  return Number.isFinite(lease) && lease > 0 ? lease : undefined;
}

function nameOf({ metadata }: V1Pod): string {
  return metadata?.name ?? '';
}
