/**
 * The checks that stand before a script: a value that would be taken for an option, or for the name of another machine, is
 * refused where the script begins, because what it is becomes known only then.
 */

/** What a value must not be: anything that begins with `-`, or for an archive also what has a `:`. */
export type ValueCheck = 'option' | 'archive';

export interface CheckedValue {
  /** The variable that carries the value. */
  readonly name: string;
  /** The expression as it stands in the file. */
  readonly source: string;
  readonly check: ValueCheck;
}

/** Shell text on one line, so that the lines of the script keep their numbers. */
export function checksOf(values: readonly CheckedValue[]): string {
  return values.map(checkOf).join('');
}

function checkOf({ name, source, check }: CheckedValue): string {
  const pattern = check === 'option' ? '-*' : '-*|*:*';
  const cause =
    check === 'option'
      ? 'begins with "-" and would be taken for an option'
      : 'begins with "-" or holds ":", which an archive cannot be called';
  const text = `penstock: the value of \${{ ${source} }} ${cause}`.replace(/\s+/g, ' ').replaceAll("'", "'\\''");
  return `case "\${${name}}" in ${pattern}) printf '%s\\n' '${text}' >&2; exit 2;; esac; `;
}
