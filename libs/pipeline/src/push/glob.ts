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
const NOWHERE: Position = { next: [] };

/** What matching may still cost: a unit for each character and each possibility that is followed beside it. */
export interface Effort {
  left: number;
}

export class Glob {
  readonly #positions: Position[] = [{ next: [] }];
  readonly #start: number;
  /** By position, the step at which it was reached last: two steps never have one number. */
  readonly #reachedAt: Uint32Array;
  #step = 0;

  /** Without a leading `!`, which is for the list that it stands in. Any text is a pattern: what is not closed stands for itself. */
  constructor(pattern: string) {
    this.#start = this.#build(readItems(pattern), END);
    this.#reachedAt = new Uint32Array(this.#positions.length);
  }

  /** `effort` counts down with what the matching costs, and nothing matches once it is used up: callers bound many matches by it. */
  matches(text: string, effort: Effort = { left: Infinity }): boolean {
    const positions = this.#positions;
    let active: number[] = [];
    let before: number[] = [];
    let step = this.#nextStep();
    this.#reach(this.#start, step, active);
    for (const character of text) {
      effort.left -= active.length + 1;
      if (effort.left <= 0) return false;
      [before, active] = [active, before];
      active.length = 0;
      step = this.#nextStep();
      for (const at of before) {
        const { takes, next } = positions[at] ?? NOWHERE;
        if (takes?.(character) === true) for (const reached of next) this.#reach(reached, step, active);
      }
      if (active.length === 0) return false;
    }
    return active.includes(END);
  }

  #nextStep(): number {
    this.#step += 1;
    if (this.#step > 0xffff_ffff) {
      this.#reachedAt.fill(0);
      this.#step = 1;
    }
    return this.#step;
  }

  /** Notes the position, or all that it stands for, each once in a step. As deep as a pattern has characters, of which it has hundreds. */
  #reach(at: number, step: number, active: number[]): void {
    if (this.#reachedAt[at] === step) return;
    this.#reachedAt[at] = step;
    const { takes, next } = this.#positions[at] ?? NOWHERE;
    if (takes !== undefined || at === END) active.push(at);
    else for (const reached of next) this.#reach(reached, step, active);
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

  includes(text: string, effort?: Effort): boolean {
    return this.#patterns.findLast(({ glob }) => glob.matches(text, effort))?.out === false;
  }

  /** The same, which asks after each pattern whether others are to have a turn before the next. */
  async includesInTurns(text: string, effort: Effort, turn: () => Promise<void> | undefined): Promise<boolean> {
    for (const { out, glob } of this.#patterns.toReversed()) {
      if (glob.matches(text, effort)) return !out;
      const others = turn();
      if (others !== undefined) await others;
    }
    return false;
  }
}
