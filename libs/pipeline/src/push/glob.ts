/**
 * Patterns over names and paths: `*` (not across `/`), `**`, `?`, `[a-z]`, `{a,b}`, a backslash before a character that
 * is meant as such. Matched by following all possibilities side by side, a character at a time: the time is at most the
 * product of both lengths, whatever the pattern. A pattern is written by whoever can push to a repository, and the same
 * pattern as a regular expression can take hours over a name of forty letters.
 */

/** One position in the pattern: takes a character, or stands for several positions at once, or is the end. */
interface Position {
  readonly takes?: (character: string) => boolean;
  /** Where it goes on: behind the character taken, or without taking one. */
  next: number[];
}

type Item =
  | { readonly kind: 'one'; readonly takes: (character: string) => boolean }
  | { readonly kind: 'many'; readonly takes: (character: string) => boolean }
  /** A `**` with the slash behind it: whole folders, or none. */
  | { readonly kind: 'folders' }
  | { readonly kind: 'choice'; readonly of: readonly (readonly Item[])[] };

const anything = (): boolean => true;
const notSlash = (character: string): boolean => character !== '/';
const END = 0;

export class Glob {
  readonly #positions: Position[] = [{ next: [] }];
  readonly #start: number;

  /** Without a leading `!`, which is for the list that it stands in. Any text is a pattern: what is not closed stands for itself. */
  constructor(pattern: string) {
    this.#start = this.#build(readItems(pattern), END);
  }

  /** `effort` counts down with what the matching costs; callers that match many names bound the whole by it. */
  matches(text: string, effort: { left: number } = { left: Infinity }): boolean {
    let active = this.#closure([this.#start]);
    for (const character of text) {
      effort.left -= active.size + 1;
      const reached: number[] = [];
      for (const at of active) {
        const position = this.#positions[at];
        if (position?.takes?.(character) === true) reached.push(...position.next);
      }
      if (reached.length === 0) return false;
      active = this.#closure(reached);
    }
    return active.has(END);
  }

  #closure(from: readonly number[]): Set<number> {
    const found = new Set<number>(from);
    for (const at of found) {
      const position = this.#positions[at];
      if (position !== undefined && position.takes === undefined) for (const next of position.next) found.add(next);
    }
    return found;
  }

  /** From the last item to the first, so that each knows where it goes on. */
  #build(items: readonly Item[], behind: number): number {
    return items.reduceRight((next, item) => this.#buildOne(item, next), behind);
  }

  #buildOne(item: Item, next: number): number {
    if (item.kind === 'one') return this.#add({ takes: item.takes, next: [next] });
    if (item.kind === 'choice') return this.#add({ next: item.of.map((items) => this.#build(items, next)) });
    if (item.kind === 'many') return this.#loop(item.takes, next);
    const slash = this.#add({ takes: (character) => character === '/', next: [next] });
    return this.#add({ next: [next, this.#loop(anything, slash)] });
  }

  #loop(takes: (character: string) => boolean, next: number): number {
    const fork: Position = { next: [next] };
    const at = this.#add(fork);
    fork.next.push(this.#add({ takes, next: [at] }));
    return at;
  }

  #add(position: Position): number {
    return this.#positions.push(position) - 1;
  }
}

function readItems(pattern: string): Item[] {
  const characters = [...pattern];
  const items: Item[] = [];
  for (let at = 0; at < characters.length; at += 1) {
    const character = characters[at] ?? '';
    if (character === '*' && characters[at + 1] === '*') {
      while (characters[at + 1] === '*') at += 1;
      const before = items.at(-1);
      const atFolder = before === undefined || (before.kind === 'one' && before.takes('/') && !before.takes('a'));
      if (atFolder && characters[at + 1] === '/') {
        at += 1;
        items.push({ kind: 'folders' });
      } else {
        items.push({ kind: 'many', takes: anything });
      }
    } else if (character === '*') {
      items.push({ kind: 'many', takes: notSlash });
    } else if (character === '?') {
      items.push({ kind: 'one', takes: notSlash });
    } else if (character === '[' && characters.indexOf(']', at + 2) > 0) {
      const end = characters.indexOf(']', at + 2);
      items.push({ kind: 'one', takes: classOf(characters.slice(at + 1, end)) });
      at = end;
    } else if (character === '{' && characters.includes('}', at)) {
      const end = characters.indexOf('}', at);
      items.push({
        kind: 'choice',
        of: characters
          .slice(at + 1, end)
          .join('')
          .split(',')
          .map(readItems),
      });
      at = end;
    } else {
      if (character === '\\' && at + 1 < characters.length) at += 1;
      const wanted = characters[at] ?? '';
      items.push({ kind: 'one', takes: (given) => given === wanted });
    }
  }
  return items;
}

function classOf(characters: readonly string[]): (character: string) => boolean {
  const negated = characters[0] === '!' || characters[0] === '^';
  const listed = negated ? characters.slice(1) : characters;
  const ranges: (readonly [from: string, to: string])[] = [];
  for (let at = 0; at < listed.length; at += 1) {
    const from = listed[at] ?? '';
    const isRange = listed[at + 1] === '-' && at + 2 < listed.length;
    ranges.push([from, isRange ? (listed[at + 2] ?? '') : from]);
    if (isRange) at += 2;
  }
  return (character) =>
    character !== '/' && ranges.some(([from, to]) => from <= character && character <= to) !== negated;
}

/** Whether the last pattern that fits a text takes it in (`release/*`) or out again (`!release/old`). */
export class GlobList {
  readonly #patterns: readonly { readonly out: boolean; readonly glob: Glob }[];

  constructor(patterns: readonly string[]) {
    this.#patterns = patterns.map((pattern) => {
      const out = pattern.startsWith('!');
      return { out, glob: new Glob(out ? pattern.slice(1) : pattern) };
    });
  }

  includes(text: string, effort?: { left: number }): boolean {
    return this.#patterns.findLast(({ glob }) => glob.matches(text, effort))?.out === false;
  }
}
