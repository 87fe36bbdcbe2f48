import { jwtSecretsOf } from '@penstock/config';

/** What stands in no log line of the server. */
export function secretsOf({
  apiKey,
  adminKey,
  jwtSecret,
  masterKeys = [],
}: {
  readonly apiKey: string;
  readonly adminKey?: string | undefined;
  readonly jwtSecret: string;
  readonly masterKeys?: readonly string[] | undefined;
}): string[] {
  return [apiKey, ...(adminKey === undefined ? [] : [adminKey]), ...jwtSecretsOf(jwtSecret), ...masterKeys];
}
