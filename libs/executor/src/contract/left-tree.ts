/**
 * The list of what a stage has left, as it comes from where it ran: paths below its folder, each ended by a NUL; behind the files comes an
 * empty one, and then each link and what it says. A stranger says how long it is, up to the bounds of whoever brings it.
 */

export interface LeftTree {
  readonly files: readonly string[];
  readonly links: ReadonlyMap<string, string>;
}

/** Parts the files from the links; no name is empty. */
const LINKS_FOLLOW = '';

/** Of a list that may be long this takes seconds: it is for a thread. */
export function leftTreeOf(list: Uint8Array): LeftTree {
  const names = Buffer.from(list.buffer, list.byteOffset, list.byteLength).toString('utf8').split('\0');
  const end = names.indexOf(LINKS_FOLLOW);
  const links = new Map<string, string>();
  for (let at = end + 1; end >= 0 && at + 1 < names.length; at += 2)
    links.set(plainPath(names[at] ?? ''), names[at + 1] ?? '');
  return { files: names.slice(0, Math.max(0, end)).map(plainPath), links };
}

/** Without the `./` that it may begin with. */
export function plainPath(name: string): string {
  return name.startsWith('./') ? name.slice(2) : name;
}
