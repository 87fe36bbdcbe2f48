/**
 * The list of what a stage has left, as it comes from where it ran: paths below its folder, each ended by a NUL, in four parts with an
 * empty one between them: the files; each link and what it says; what else there is but folders; the folders that cannot be looked
 * into. A stranger says how long it is, up to the bounds of whoever brings it.
 */

export interface LeftTree {
  readonly files: readonly string[];
  readonly links: ReadonlyMap<string, string>;
  /** Pipes, sockets and devices. */
  readonly others: readonly string[];
  /** Folders that cannot be looked into. */
  readonly shut: readonly string[];
}

/** No name is empty. */
const NEXT_PART = '';

/** Of a list that may be long this takes seconds: it is for a thread. */
export function leftTreeOf(list: Uint8Array): LeftTree {
  const names = Buffer.from(list.buffer, list.byteOffset, list.byteLength).toString('utf8').split('\0');
  let at = 0;
  const part = (): string[] => {
    const end = names.indexOf(NEXT_PART, at);
    const own = names.slice(at, Math.max(at, end)).map(plainPath);
    at = end === -1 ? names.length : end + 1;
    return own;
  };
  const files = part();
  const links = new Map<string, string>();
  // What a link says may be empty where it went meanwhile.
  for (; at + 1 < names.length && names[at] !== NEXT_PART; at += 2)
    links.set(plainPath(names[at] ?? ''), names[at + 1] ?? '');
  at += 1;
  return { files, links, others: part(), shut: part() };
}

/** Without the `./` that it may begin with. */
export function plainPath(name: string): string {
  return name.startsWith('./') ? name.slice(2) : name;
}
