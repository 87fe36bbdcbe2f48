export {
  apiKeyAuthenticator, Callers, requireReader, requireWriter, tenantOfUser, TOKEN_SCOPES,
  type Authenticator, type Caller, type CallersOptions, type CallerUser, type TokenScope,
} from './callers.ts';
