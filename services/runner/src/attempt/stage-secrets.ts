/** The secrets of one attempt, asked for and made ready for its stage. */
import { secretsOf, type StageSecrets } from '@penstock/executor';
import type { Job } from '@penstock/bus';
import { redeemSlip, type SlipDesk } from '../session/slip-desk.ts';

/** Or the lines that say in the stage's log which it does not get, and why. Rejects with the signal's reason. */
export async function stageSecrets(
  job: Job,
  desk: SlipDesk,
  bootNow: () => number,
  signal: AbortSignal,
): Promise<StageSecrets | { readonly lacking: readonly string[] }> {
  const { secrets: uses = [] } = job;
  if (uses.length === 0) return secretsOf([], new Map());
  const outcome = await redeemSlip(job, desk, bootNow, signal);
  if ('why' in outcome) return { lacking: [`the stage cannot start: its secrets could not be had: ${outcome.why}`] };
  const { values, withheld } = outcome;
  if (withheld.length > 0)
    return {
      lacking: withheld.map(({ name, why }) => `the stage cannot start: it is not given the secret ${name}: ${why}`),
    };
  const texts = Object.entries(values).map(([name, value]) => [name, Buffer.from(value, 'base64').toString()] as const);
  return secretsOf(uses, new Map(texts));
}
