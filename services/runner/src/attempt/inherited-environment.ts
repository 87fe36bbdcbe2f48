/** What a stage inherits of its runner's environment: where programs are, how to speak to people, and nothing else. */

const INHERITED = ['PATH', 'LANG', 'LANGUAGE', 'LC_ALL', 'LC_CTYPE', 'TZ'];

export function inheritedEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  home: string,
): Record<string, string> {
  const inherited: Record<string, string> = { LANG: 'C.UTF-8', HOME: home };
  for (const name of INHERITED) {
    const value = env[name];
    if (value !== undefined) inherited[name] = value;
  }
  return inherited;
}
