/** How a name out of a package is shown in messages: quoted, on one line, never more of it than can be read. */

const LENGTH_MAX = 120;

export function printableName(name: string): string {
  const cut = name.length > LENGTH_MAX ? `${name.slice(0, LENGTH_MAX - 1)}…` : name;
  return `'${cut.replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`)}'`;
}
