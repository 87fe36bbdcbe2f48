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

/** More than this, and the programs of a stage could not be started for what it never asked for. */
const LENT_BYTES_MAX = 128 * 1024;

/** What the operator gives every stage of its own environment (`SERVICE_STAGE_ENV`). What is not there is left out, and `onLacking` is told why. */
export function lentEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  names: readonly string[],
  onLacking: (name: string, why: string) => void,
): Record<string, string> {
  const lent: Record<string, string> = {};
  let bytes = 0;
  for (const name of names) {
    const value = env[name];
    const size = Buffer.byteLength(`${name}=${value ?? ''}`);
    if (value === undefined) onLacking(name, 'it is not set');
    else if (bytes + size > LENT_BYTES_MAX) onLacking(name, `all together are more than ${LENT_BYTES_MAX} bytes`);
    else {
      lent[name] = value;
      bytes += size;
    }
  }
  return lent;
}
