/**
 * Deletes what auth has of a user who is shut out for good (SUSPENSION-3). The user's own document goes last: until then the user is
 * found by its name, and what was cut off can be done again.
 */
import { Conflict } from '@penstock/errors';
import { tenantOfUser, type ForgottenUser } from '@penstock/identity';
import type { Fleet } from './fleet.ts';
import type { AccessGrants } from '../model/access-grants.ts';
import type { PersonalTokens } from '../model/personal-tokens.ts';
import type { Sessions } from '../model/sessions.ts';
import type { StageSecrets } from '../model/stage-secrets.ts';
import type { Users } from '../model/users.ts';

export interface ForgettingOptions {
  readonly fleet: Pick<Fleet, 'revokeAll' | 'lookSoon'>;
  readonly users: Users;
  readonly sessions: Sessions;
  readonly tokens: PersonalTokens;
  readonly stageSecrets: StageSecrets;
  readonly access: AccessGrants;
}

/** Safe to repeat: it counts what was left. Throws `Conflict` for a user who is not shut out for good. */
export async function forgetUser(
  { fleet, users, sessions, tokens, stageSecrets, access }: ForgettingOptions,
  userId: string,
): Promise<ForgottenUser> {
  if (!(await users.isDeleted(userId))) throw new Conflict('Only who is shut out for good is deleted.');
  const ended = await sessions.forget(userId);
  const revoked = await tokens.revokeAll(userId);
  const runnerTokens = await fleet.revokeAll(tenantOfUser(userId));
  const secrets = await stageSecrets.deleteAll(tenantOfUser(userId));
  const { given, received } = await access.forget(userId);
  const { identities } = await users.delete(userId);
  return {
    sessions: ended,
    tokens: revoked.length + runnerTokens,
    secrets,
    identities,
    grantsGiven: given,
    grantsReceived: received,
  };
}
