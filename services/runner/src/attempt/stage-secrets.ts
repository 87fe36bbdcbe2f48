/** The secrets and id tokens of one attempt, asked for and made ready for its stage. */
import { imageLogins, noSecrets, secretsOf, type StageSecrets } from '@penstock/executor';
import type { IdTokens, Job } from '@penstock/bus';
import { imageSecretsOf } from '@penstock/pipeline';
import { redeemSlip, type SlipDesk } from '../session/slip-desk.ts';

export interface GivenToStage {
  readonly secrets: StageSecrets;
  /** Of its images' registries, by the names of secrets. */
  readonly logins: ReturnType<typeof imageLogins>['logins'];
  /** Undefined: it asks for none. */
  readonly idTokens: IdTokens | undefined;
}

/** What of a job is not to be kept on a disk. */
export function holdsSecrets({ secrets = [], idTokens = [], place }: Job): boolean {
  return secrets.length + idTokens.length + imageSecretsOf(place).length > 0;
}

/** Or the lines that say in the stage's log which it does not get, and why. Rejects with the signal's reason. */
export async function stageSecrets(
  job: Job,
  desk: SlipDesk,
  bootNow: () => number,
  signal: AbortSignal,
): Promise<GivenToStage | { readonly lacking: readonly string[] }> {
  const { secrets: uses = [], idTokens: wanted = [] } = job;
  const ofImages = imageSecretsOf(job.place);
  if (!holdsSecrets(job)) return { secrets: noSecrets(), logins: new Map(), idTokens: undefined };
  const outcome = await redeemSlip(job, desk, bootNow, signal);
  const named = uses.length + ofImages.length === 0 ? 'id tokens' : 'secrets';
  if ('why' in outcome) return { lacking: [`the stage cannot start: its ${named} could not be had: ${outcome.why}`] };
  const { values, withheld, idTokens } = outcome;
  if (withheld.length > 0)
    return {
      lacking: withheld.map(({ name, why }) => `the stage cannot start: it is not given the secret ${name}: ${why}`),
    };
  if (wanted.length > 0 && (idTokens === undefined || 'why' in idTokens))
    return { lacking: [`the stage cannot start: it gets no id token: ${idTokens?.why ?? 'auth gives none'}`] };
  const texts = Object.entries(values).map(([name, value]) => [name, Buffer.from(value, 'base64').toString()] as const);
  const { logins, lacking } = imageLogins(ofImages, new Map(texts));
  if (lacking.length > 0) return { lacking: lacking.map((line) => `the stage cannot start: ${line}`) };
  const secrets = await secretsOf(uses, new Map(texts));
  const passwords = [...logins.values()].map(({ password }) => password);
  secrets.mask.add(passwords);
  return {
    secrets: { ...secrets, values: [...secrets.values, ...passwords] },
    logins,
    idTokens: idTokens === undefined || 'why' in idTokens ? undefined : idTokens,
  };
}
