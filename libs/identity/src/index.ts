export {
  apiKeyAuthenticator, Callers, requireReader, requireWriter, tenantOfUser, TOKEN_SCOPES,
  type Authenticator, type Caller, type CallersOptions, type CallerUser, type TokenScope,
} from './callers.ts';
export {
  ACCESS_TOKEN, PERSONAL_TOKEN_PREFIX, REVOCATION_TTL_MS, revocationKeys,
  type AccessClaims, type AuthCalls, type AuthUser, type AuthVerb, type CreatedToken, type Revocation, type TokenIdentity, type TokenInfo,
} from './auth-messages.ts';
export { signAccessToken } from './access-token.ts';
export { callAuth } from './auth-client.ts';
export { isPersonalToken, newPersonalToken, personalTokenHash } from './personal-token.ts';
