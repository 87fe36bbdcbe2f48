/** `JWT_SECRET` as it is given: one secret, or several by comma while one takes another's place. */

/**
 * The first signs and seals, all verify and open. The whole text stands last where there are several: a secret of an earlier
 * release may hold a comma, and what was made with it is read on.
 */
export function jwtSecretsOf(given: string): readonly [string, ...string[]] {
  const [first, ...others] = given
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
  if (first === undefined) return [given];
  return first === given ? [given] : ([...new Set([first, ...others, given])] as [string, ...string[]]);
}
