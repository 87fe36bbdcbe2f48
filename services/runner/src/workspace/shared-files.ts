/** What the shared folder of a run has of the files that its stages come after, whoever has kept them and wherever. */
import { unlessAborted } from '@penstock/async';
import type { Job } from '@penstock/bus';
import type { StageUser, Workspaces } from '@penstock/executor';

/** See `artifacts/inherited-files.ts`. */
export interface InheritedSource {
  filling(
    job: Job,
    fill: ((path: string) => Promise<void>) | undefined,
    signal: AbortSignal,
    user?: StageUser,
  ): ((path: string) => Promise<void>) | undefined;
  layOver(
    job: Job,
    inherits: NonNullable<Job['inherits']>,
    workspace: string,
    options: { readonly isKnown: boolean; readonly signal: AbortSignal; readonly user?: StageUser | undefined },
  ): Promise<void>;
}

export async function fillShared(
  path: string,
  fill: (path: string) => Promise<void>,
  { runId, inherits = [] }: Job,
  workspaces: Pick<Workspaces, 'contentsOf'>,
): Promise<void> {
  const contents = workspaces.contentsOf(runId);
  contents.laidOut.clear();
  await fill(path);
  // The run may be from before this process, and have had other folders alone.
  contents.isKnown = true;
  for (const { manifest } of inherits) contents.laidOut.set(manifest, Promise.resolve());
}

/**
 * A shared folder that is there lacks the kept files of stages that ran elsewhere: in a folder of their own, on another runner, in the run that
 * this one repeats. Each list is laid out once, for later stages may have changed its files.
 */
export async function layOutMissing(
  job: Job,
  workspace: string,
  workspaces: Pick<Workspaces, 'contentsOf'>,
  inherited: InheritedSource,
  { signal, user }: { readonly signal: AbortSignal; readonly user?: StageUser | undefined },
): Promise<void> {
  const { runId, inherits } = job;
  if (inherits === undefined) return;
  const { isKnown, laidOut } = workspaces.contentsOf(runId);
  const there = (): (Promise<void> | undefined)[] => inherits.map(({ manifest }) => laidOut.get(manifest));
  for (;;) {
    // What another stage lays out is waited for, so that later lists come over earlier ones; where that came to nothing it is done here.
    const known = there();
    await unlessAborted(Promise.allSettled(known), signal);
    // Another stage may have begun something, or begun it anew, meanwhile.
    if (there().some((each, index) => each !== known[index])) continue;
    const missing = inherits.filter((_, index) => known[index] === undefined);
    if (missing.length === 0) return;
    const laying = inherited.layOver(job, missing, workspace, { isKnown, signal, user });
    for (const { manifest } of missing) laidOut.set(manifest, laying);
    await laying.catch((error: unknown) => {
      for (const { manifest } of missing) laidOut.delete(manifest);
      throw error;
    });
    return;
  }
}
