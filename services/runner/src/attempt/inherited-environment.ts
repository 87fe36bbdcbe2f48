/** What a stage inherits of its runner's environment: where programs are, how to speak to people, and nothing else. */

const INHERITED = ['LANG', 'LANGUAGE', 'LC_ALL', 'LC_CTYPE', 'TZ'];

/** `sharesPrograms`: the stage finds the runner's own, and no image's. */
export function inheritedEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  home: string,
  sharesPrograms: boolean,
): Record<string, string> {
  const inherited: Record<string, string> = { LANG: 'C.UTF-8', HOME: home };
  for (const name of sharesPrograms ? ['PATH', ...INHERITED] : INHERITED) {
    const value = env[name];
    if (value !== undefined) inherited[name] = value;
  }
  return inherited;
}
