/** All that one attempt is given in its Pod before it begins, and all that is brought out of it once it has ended. */
import { rm } from 'node:fs/promises';
import { backoffMs, pauseOrAbort } from '@penstock/async';
import type { StageExit, StageLeavings, StageSpec } from '@penstock/executor';
import type { Cluster } from '../cluster/cluster.ts';
import { ClusterError, mayPass, NotBroughtOut } from '../errors.ts';
import { bringFolder, type Brought } from './folders.ts';
import { bringOut } from './leavings.ts';
import { leavingMsOf } from './pod-manifest.ts';

interface InPod {
  readonly cluster: Cluster;
  readonly pod: string;
  readonly signal: AbortSignal;
  /** A line for the log of the stage. */
  readonly remark: (text: string) => void | Promise<void>;
}

const RETRY = { firstMs: 200, maxMs: 5_000 };
const MISSING_TOLD_MAX = 10;
const UNPACKING_FAILED = 422;

/** Its folders, and what lies over them, without which the stage begins too. @throws ClusterError */
export async function bringAllIn(
  { cluster, pod, signal, remark }: InPod,
  folders: readonly Brought[],
  laidOver: readonly Brought[],
): Promise<void> {
  for (const folder of folders) await bringFolder(cluster, pod, folder, signal);
  for (const each of laidOver)
    try {
      await bringFolder(cluster, pod, each, signal);
    } catch (error) {
      if (!(error instanceof ClusterError) || error.code !== UNPACKING_FAILED) throw error;
      await remark(`what was restored is not there as it should be: ${error.message}`);
    }
}

/** The faults of leavings none of which was brought, by where they are to be brought. */
export function faultsOfAll(leavings: readonly StageLeavings[] = [], why: string): Map<string, string> {
  return new Map(leavings.map(({ into }) => [into, why]));
}

/** Never rejects: what does not come stays among `faults`, with the reason. */
export async function bringAllOut(
  inPod: InPod,
  { spec, exit, bytesMax }: { readonly spec: StageSpec; readonly exit: StageExit; readonly bytesMax: number },
  faults: Map<string, string>,
): Promise<void> {
  const signal = AbortSignal.any([inPod.signal, AbortSignal.timeout(leavingMsOf(spec))]);
  for (const leavings of spec.leavings ?? [])
    if (leavings.isWanted(exit)) await bringOneOut({ ...inPod, signal }, leavings, bytesMax, faults);
}

async function bringOneOut(
  { cluster, pod, signal, remark }: InPod,
  leavings: StageLeavings,
  bytesMax: number,
  faults: Map<string, string>,
): Promise<void> {
  for (let failures = 1; ; failures += 1) {
    try {
      const missing = await bringOut({ cluster, pod, leavings, bytesMax, signal });
      for (const path of missing.slice(0, MISSING_TOLD_MAX))
        await remark(`${JSON.stringify(path)} is not kept: it cannot be read`);
      faults.delete(leavings.into);
      return;
    } catch (error) {
      faults.set(leavings.into, `the files could not be brought out of its Pod: ${sayOf(error, signal)}`);
      if (!(error instanceof ClusterError) || !mayPass(error)) return;
      await rm(leavings.into, { recursive: true, force: true });
      await pauseOrAbort(backoffMs(failures, RETRY), signal);
      if (signal.aborted) return;
    }
  }
}

/** Without a path of this machine's. */
function sayOf(error: unknown, signal: AbortSignal): string {
  if (signal.aborted) return 'there was no time left for them';
  if (error instanceof ClusterError || error instanceof NotBroughtOut) return error.message;
  return (error as NodeJS.ErrnoException).code ?? 'their archive is damaged';
}
