/** What stands in no log line of the server. */
export function secretsOf({
  apiKey,
  jwtSecret,
  masterKeys = [],
}: {
  readonly apiKey: string;
  readonly jwtSecret: string;
  readonly masterKeys?: readonly string[] | undefined;
}): string[] {
  return [apiKey, jwtSecret, ...masterKeys];
}
