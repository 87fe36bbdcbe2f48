/** The administration key is a key of its own: who has the API key must not administer by it in production mode. */
import { ConfigurationError } from './errors.ts';

/** Throws `ConfigurationError` where both keys are the same. */
export function checkAdminKey({
  adminKey,
  apiKey,
}: {
  readonly adminKey?: string | undefined;
  readonly apiKey?: string | undefined;
}): void {
  if (adminKey !== undefined && adminKey === apiKey)
    throw new ConfigurationError([
      'SERVICE_ADMIN_KEY is the same as SERVICE_API_KEY: whoever triggers runs would administer; make another one with: openssl rand -hex 32',
    ]);
}
