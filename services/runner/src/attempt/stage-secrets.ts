/** The secrets and id tokens of one attempt, asked for and made ready for its stage. */
import { secretsOf, type StageSecrets } from '@penstock/executor';
import type { IdTokens, Job } from '@penstock/bus';
import { redeemSlip, type SlipDesk } from '../session/slip-desk.ts';

export interface GivenToStage {
  readonly secrets: StageSecrets;
  /** Undefined: it asks for none. */
  readonly idTokens: IdTokens | undefined;
}

/** `tokensAsFiles`: id tokens are files among the secrets, which stay as they are. Or the lines that say in the stage's log which it does not get, and why. Rejects with the signal's reason. */
export async function stageSecrets(
  job: Job,
  desk: SlipDesk,
  bootNow: () => number,
  signal: AbortSignal,
  tokensAsFiles = false,
): Promise<GivenToStage | { readonly lacking: readonly string[] }> {
  const { secrets: uses = [], idTokens: wanted = [] } = job;
  if (uses.length + wanted.length === 0) return { secrets: secretsOf([], new Map()), idTokens: undefined };
  const outcome = await redeemSlip(job, desk, bootNow, signal);
  const named = uses.length === 0 ? 'id tokens' : 'secrets';
  if ('why' in outcome) return { lacking: [`the stage cannot start: its ${named} could not be had: ${outcome.why}`] };
  const { values, withheld, idTokens } = outcome;
  if (withheld.length > 0)
    return {
      lacking: withheld.map(({ name, why }) => `the stage cannot start: it is not given the secret ${name}: ${why}`),
    };
  if (wanted.length > 0 && (idTokens === undefined || 'why' in idTokens))
    return { lacking: [`the stage cannot start: it gets no id token: ${idTokens?.why ?? 'auth gives none'}`] };
  const texts = Object.entries(values).map(([name, value]) => [name, Buffer.from(value, 'base64').toString()] as const);
  const given = idTokens === undefined || 'why' in idTokens ? undefined : idTokens;
  if (given === undefined || !tokensAsFiles) return { secrets: secretsOf(uses, new Map(texts)), idTokens: given };
  const files = wanted.map(({ variable, audience }) => ({ variable, name: `id token ${audience}`, file: true }));
  const contents = wanted.map(({ audience }) => [`id token ${audience}`, given.tokens[audience] ?? ''] as const);
  return { secrets: secretsOf([...uses, ...files], new Map([...texts, ...contents])), idTokens: undefined };
}
