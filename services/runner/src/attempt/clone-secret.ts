/** What the repository of one attempt's checkout is read with, where its user has named a secret for that (P31). */
import type { CloneSecret, Job } from '@penstock/bus';
import { redeemCloneSlip, type SlipDesk } from '../session/slip-desk.ts';
import { NotPrepared } from '../workspace/errors.ts';

/** Undefined: it is read with what this machine has. @throws NotPrepared; the signal's reason */
export async function cloneSecretOf(
  job: Job,
  desk: SlipDesk,
  bootNow: () => number,
  signal: AbortSignal,
): Promise<CloneSecret | undefined> {
  const { cloneSlip } = job;
  if (cloneSlip === undefined) return undefined;
  const secret = await redeemCloneSlip(job, cloneSlip, desk, bootNow, signal);
  if (secret === undefined || !('why' in secret)) return secret;
  throw new NotPrepared(`the workspace could not be checked out: ${secret.why}`);
}

/** What is masked of it. */
export function valuesOf({ opens }: CloneSecret): readonly string[] {
  return 'key' in opens ? [opens.key] : [opens.password, encodeURIComponent(opens.password)];
}
