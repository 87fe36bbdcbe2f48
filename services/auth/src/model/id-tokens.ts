/** What an id token says of the stage that has it: who it is (`sub`), and on what it runs. Others decide by it what to let the stage do. */
import { randomUUID } from 'node:crypto';
import type { IdTokens, Slip } from '@penstock/bus';
import { SignJWT } from 'jose';
import { SIGNING_ALGORITHM, type SigningKeys } from './signing-keys.ts';

const ID_TOKEN_LIFE_MS = 60 * 60_000;
/** Clocks of those who take it may be behind this one by so much. */
const BACKDATED_SECS = 5;
const AUDIENCES_MAX = 5;
export const ID_TOKEN_CLAIMS: readonly string[] = [
  ...['iss', 'sub', 'aud', 'iat', 'nbf', 'exp', 'jti'],
  ...[
    'run_id',
    'stage',
    'attempt',
    'pipeline',
    'provider',
    'repository',
    'ref',
    'commit',
    'trigger',
    'actor',
    'tenant',
  ],
];

export interface IdTokenSources {
  readonly keys: SigningKeys;
  /** Without a slash at its end. */
  readonly issuer: () => string;
  readonly now: () => number;
}

export async function idTokensFor(
  slip: Slip,
  { keys, issuer, now }: IdTokenSources,
): Promise<IdTokens | { readonly why: string }> {
  if (!slip.trusted) return { why: 'a run that is not trusted gets none' };
  if (!keys.canSign) return { why: 'this server gives none, for its operator has not set SERVICE_MASTER_KEY' };
  const at = now();
  const { id, key } = await keys.current();
  const issuedAt = Math.floor(at / 1000) - BACKDATED_SECS;
  // No token outlives what it was given to.
  const lifeMs = Math.min(ID_TOKEN_LIFE_MS, slip.until - at);
  const tokens: Record<string, string> = {};
  for (const audience of (slip.audiences ?? []).slice(0, AUDIENCES_MAX))
    tokens[audience] = await new SignJWT(claimsOf(slip))
      .setProtectedHeader({ alg: SIGNING_ALGORITHM, kid: id, typ: 'JWT' })
      .setIssuer(issuer())
      .setSubject(subjectOf(slip))
      .setAudience(audience)
      .setIssuedAt(issuedAt)
      .setNotBefore(issuedAt)
      .setExpirationTime(Math.floor((at + lifeMs) / 1000) - BACKDATED_SECS)
      .setJti(randomUUID())
      .sign(key);
  return { tokens, lifeMs };
}

/** Each part is percent-encoded: no name of a branch or a pipeline can make another's subject. */
export function subjectOf({
  tenant,
  provider,
  repository,
  ref,
  pipeline,
  edited,
}: Pick<Slip, 'tenant' | 'provider' | 'repository' | 'ref' | 'pipeline' | 'edited'>): string {
  const part = (text: string): string => encodeURIComponent(text.toWellFormed());
  const end = edited === true ? ':edited' : '';
  if (provider === undefined || repository === undefined || ref === undefined)
    return `tenant:${part(tenant)}:pipeline:${part(pipeline)}${end}`;
  return `tenant:${part(tenant)}:repo:${part(provider)}/${part(repository)}:ref:${part(ref)}${end}`;
}

function claimsOf(slip: Slip): Record<string, string | number> {
  const { run, stage, attempt, pipeline, provider, repository, ref, commit, actor, tenant } = slip;
  // Whom the API was asked for a ref by is no other trigger to anybody outside.
  const trigger = slip.trigger === 'dispatch' ? 'api' : slip.trigger;
  const claims = { run_id: run, stage, attempt, pipeline, provider, repository, ref, commit, trigger, actor, tenant };
  return Object.fromEntries(
    Object.entries(claims).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const])),
  );
}
