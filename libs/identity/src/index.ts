export {
  apiKeyAuthenticator,
  bearerTokenOf,
  Callers,
  callerOfUser,
  tenantOfUser,
  TOKEN_SCOPES,
  type Authenticator,
  type Caller,
  type CallersOptions,
  type CallerUser,
  type TokenScope,
} from './callers.ts';
export {
  actorOf,
  requireAdmin,
  requireChanger,
  requireCredential,
  requireOperator,
  requireOwnRuns,
  requireReader,
  requireScope,
  requireUser,
  requireWriter,
} from './caller-rights.ts';
export {
  ACCESS_TOKEN,
  PERSONAL_TOKEN_PREFIX,
  REVOCATION_TTL_MS,
  revocationKeys,
  type AccessClaims,
  type AuthCalls,
  type AuthUser,
  type AuthVerb,
  type CreatedToken,
  type Revocation,
  type TokenIdentity,
  type TokenInfo,
} from './auth-messages.ts';
export { signAccessToken, verifyAccessToken, type VerifiedAccess } from './access-token.ts';
export { callAuth } from './auth-client.ts';
export { openIdentity, type Identity, type IdentityOptions } from './identity.ts';
export { jwtAuthenticator, type JwtAuthenticatorOptions } from './jwt-authenticator.ts';
export { personalTokenAuthenticator, type PersonalTokenAuthenticatorOptions } from './personal-token-authenticator.ts';
export { isPersonalToken, newPersonalToken, personalTokenHash } from './personal-token.ts';
export { Revocations, type Revocable, type RevocationsOptions } from './revocations.ts';
export { onBehalfOf, type OnBehalf } from './on-behalf.ts';
export { sessionsSpec } from './session-document.ts';
