export {
  bearerTokenOf,
  Callers,
  tenantOfUser,
  userOfTenant,
  TOKEN_SCOPES,
  type Authenticator,
  type Caller,
  type CallerUser,
  type TokenScope,
} from './callers.ts';
export {
  actorOf,
  grantedReaches,
  requireAdmin,
  requireAdministrator,
  requireChanger,
  requireCredential,
  requireOperator,
  requireOwnRuns,
  requireReader,
  requireScope,
  requireSecretsTenant,
  readableTenants,
  requireUser,
  requireWriter,
} from './caller-rights.ts';
export {
  REVOCATION_TTL_MS,
  revocationKeys,
  type AccessClaims,
  type AuthCalls,
  type AuthUser,
  type AuthVerb,
  type CreatedToken,
  type Revocation,
  type TokenInfo,
} from './auth-messages.ts';
export {
  ACCESS_ROLES,
  type AccessCalls,
  type AccessEntry,
  type AccessRole,
  type Grant,
  type OwnedRepository,
} from './access-messages.ts';
export type { MasterKeyCalls, MasterKeysView, MasterKeyView } from './master-key-messages.ts';
export type { ForgottenUser, PeopleCalls, SuspendedUser } from './people-messages.ts';
export type { SecretCalls, SecretInfo, SecretScope } from './secret-messages.ts';
export { accessTokenKeys, signAccessToken, verifyAccessToken } from './access-token.ts';
export { callAuth } from './auth-client.ts';
export { openIdentity, type Identity } from './identity.ts';
export { Remembered } from './remembered.ts';
export {
  isPersonalToken,
  isRunnerToken,
  newPersonalToken,
  newRunnerToken,
  personalTokenHash,
} from './personal-token.ts';
export {
  FLEET_PATHS,
  type AttachAnswer,
  type AttachRequest,
  type CreatedRunnerToken,
  type RunnerTokenCalls,
  type RunnerTokenInfo,
} from './runner-messages.ts';
export { readFleetTicket, signFleetTicket } from './fleet-ticket.ts';
export { Revocations, type Revocable } from './revocations.ts';
export { onBehalfOf, type OnBehalf } from './on-behalf.ts';
export { newSealingKey, sealTo, type SealingKey } from './sealing-key.ts';
export { sessionsSpec, suspendedUsersSpec } from './session-document.ts';
