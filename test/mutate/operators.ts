/**
 * Mutants that operators make: conditions negated, statements and awaits dropped, comparisons and bounds changed, in the functions of
 * the files that docs/protocols.md says hold a rule. What should notice them are the tests that read the file and those that
 * docs/protocol-tests.md names for its rules, and for what the simulation drives, its worlds. A sample of them is for a night: some change nothing that anybody could
 * notice, and say so by living; `equivalents.ts` has those that were read, with why.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Random } from '../support/random.ts';
import { equivalents } from './equivalents.ts';
import type { Check, Mutant } from './mutant.ts';

const WORLDS = 200;
/** What the simulation drives as it is. */
const SIMULATED =
  /^(services\/scheduler\/src\/(partition|dispatch|admission|run|membership|shell)\/|services\/runner\/src\/(session\/|attempt\/|report\/outbox|runner\.ts|workspace\/run-folders)|libs\/run\/)/;
/** Files of tests that a mutant is given at most, the narrowest first. */
const TESTS_MAX = 8;

interface Operator {
  readonly name: string;
  /** The line as it is broken; undefined: there is nothing in it to break. */
  readonly apply: (line: string) => string | undefined;
}

const operators: readonly Operator[] = [
  {
    name: 'takes a condition for its opposite',
    apply: (line) =>
      replaced(line, /^(\s*(?:\} else )?if )\((.+)\)( \{| return\b.*;| continue;| break;)$/, '$1(!($2))$3'),
  },
  {
    name: 'does not wait',
    apply: (line) => replaced(line, /^(\s*)await (.+;)$/, '$1void $2'),
  },
  { name: 'includes a bound', apply: (line) => replaced(line, / ([<>]) (?=[\w(])/, ' $1= ') },
  { name: 'excludes a bound', apply: (line) => replaced(line, / ([<>])= /, ' $1 ') },
  { name: 'takes "and" for "or"', apply: (line) => replaced(line, / && /, ' || ') },
  { name: 'takes "or" for "and"', apply: (line) => replaced(line, / \|\| /, ' && ') },
  { name: 'takes "is" for "is not"', apply: (line) => replaced(line, / === /, ' !== ') },
  { name: 'takes "is not" for "is"', apply: (line) => replaced(line, / !== /, ' === ') },
  { name: 'takes the lower for the higher', apply: (line) => replaced(line, /Math\.max\(/, 'Math.min(') },
  { name: 'takes the higher for the lower', apply: (line) => replaced(line, /Math\.min\(/, 'Math.max(') },
  { name: 'adds one too few', apply: (line) => replaced(line, / \+ 1\b(?!_)/, ' + 0') },
  { name: 'answers the opposite', apply: (line) => replaced(line, /\breturn (true|false);/, 'return !$1;') },
  {
    name: 'leaves a statement out',
    // Not `super()`: without it nothing can be made at all. Nor what is only told to people, which no rule is about.
    apply: (line) =>
      replaced(
        line,
        /^(\s+)(?!super\(|(?:[\w#.]+\.)?log\.(?:debug|info|warn|error)\()(?:await |void )?(?:this\.|[a-z]\w*[.(])[^=]*\);$/,
        '$1;',
      ),
  },
  {
    name: 'has a bound ten times as high',
    apply: (line) => replaced(line, /^((?:export )?const [A-Z_]+(?:_MS|_MAX|_AT|_MIN)? = [^;]+);$/, '$1 * 10;'),
  },
];

/** `count` of them, at most, the wanted rules taking turns; the same ones for the same chance and code. */
export function sampled(
  root: string,
  random: Random,
  count: number,
  isWanted: (mutant: { readonly rule: string }) => boolean,
): readonly Mutant[] {
  if (count === 0) return [];
  const left = madeByRule(root, isWanted);
  const chosen = new Map<string, Mutant>();
  while (left.size > 0) {
    for (const [rule, made] of left) {
      if (chosen.size === count) return [...chosen.values()];
      const mutant = takeNew(made, random, chosen);
      if (mutant === undefined) left.delete(rule);
      else chosen.set(mutant.breaks, mutant);
    }
  }
  return [...chosen.values()];
}

/** One that no other rule has taken before; undefined: there is none left. */
function takeNew(made: Mutant[], random: Random, chosen: ReadonlyMap<string, Mutant>): Mutant | undefined {
  while (made.length > 0) {
    const [mutant] = made.splice(random.int(made.length), 1);
    if (mutant !== undefined && !chosen.has(mutant.breaks)) return mutant;
  }
  return undefined;
}

/** All that can be made, under each wanted rule that its file holds. */
function madeByRule(root: string, isWanted: (mutant: { readonly rule: string }) => boolean): Map<string, Mutant[]> {
  const byRule = new Map<string, Mutant[]>();
  const texts = new Map<string, string>();
  for (const [file, rules] of heldRules(root)) {
    const wanted = rules.filter((rule) => isWanted({ rule }));
    if (wanted.length === 0) continue;
    const made = mutantsOf(root, texts, { file, rules });
    for (const rule of wanted)
      byRule.set(rule, [...(byRule.get(rule) ?? []), ...made.map((mutant) => ({ ...mutant, rule }))]);
  }
  return byRule;
}

function replaced(line: string, pattern: RegExp, by: string): string | undefined {
  const broken = line.replace(pattern, by);
  return broken === line ? undefined : broken;
}

/** Of each file that holds rules, those rules, in their order. */
function heldRules(root: string): ReadonlyMap<string, readonly string[]> {
  const held = new Map<string, string[]>();
  for (const section of readFileSync(join(root, 'docs', 'protocols.md'), 'utf8').split(/^(?=### )/m)) {
    const rule = /^### (P\d+) /.exec(section)?.[1];
    const files = /^\*\*Held\*\* in ([^*]+)/m.exec(section)?.[1] ?? '';
    if (rule === undefined) continue;
    for (const [, file = ''] of files.matchAll(/`([^`]+\.ts)`/g)) held.set(file, [...(held.get(file) ?? []), rule]);
  }
  return held;
}

/** Without its rule. */
function mutantsOf(
  root: string,
  texts: Map<string, string>,
  { file, rules }: { readonly file: string; readonly rules: readonly string[] },
): Omit<Mutant, 'rule'>[] {
  const lines = readFileSync(join(root, file), 'utf8').split('\n');
  const noticedBy = checksOf(root, texts, { file, rules });
  // A file whose tests are still to be written has no mutants: they would live, and say what is known.
  if (noticedBy.length === 0) return [];
  return lines.flatMap((line, at) => {
    // Nor assertions: what never fails can be changed unseen.
    if (/^\s*(\/?\*|\/\/|import|export \{|export type|readonly |assert\()/.test(line)) return [];
    return operators.flatMap(({ name, apply }) => {
      const broken = apply(line);
      if (broken === undefined) return [];
      const isKnown = equivalents.some(
        (one) =>
          one.file === file &&
          one.operator === name &&
          one.line === line.trim() &&
          (one.within ?? functionAround(lines, at)) === functionAround(lines, at),
      );
      if (isKnown) return [];
      const around = contextOf(lines, at);
      return [
        {
          breaks: `${name} in ${functionAround(lines, at)} (${file}:${at + 1})`,
          file,
          find: around.join('\n'),
          replace: around.map((each, index) => (index === around.length - 1 ? broken : each)).join('\n'),
          noticedBy,
        },
      ];
    });
  });
}

/** The name of the nearest method or function that the line stands in; a line outside of all names itself. */
function functionAround(lines: readonly string[], at: number): string {
  const depthOf = (line: string): number => line.length - line.trimStart().length;
  let depth = depthOf(lines[at] ?? '');
  for (let above = at - 1; above >= 0; above--) {
    const line = lines[above] ?? '';
    if (line.trim() === '' || depthOf(line) >= depth) continue;
    depth = depthOf(line);
    const name =
      /^\s*(?:export )?(?:async )?(?:(?:function\*? )|(?:static |get |set |\*)*)(#?[a-z]\w*)(?:<[^>]*>)?\(/i.exec(
        line,
      )?.[1];
    if (name !== undefined && !KEYWORDS.has(name)) return name;
  }
  return `"${(lines[at] ?? '').trim().slice(0, 60)}"`;
}

const KEYWORDS: ReadonlySet<string> = new Set(['if', 'for', 'while', 'switch', 'catch', 'return', 'await', 'function']);

/** The line, with as many before it as make it the only one of its kind in the file. */
function contextOf(lines: readonly string[], at: number): readonly string[] {
  const text = lines.join('\n');
  for (let from = at; from > 0; from--) {
    const around = lines.slice(from, at + 1);
    if (text.split(around.join('\n')).length === 2) return around;
  }
  return lines.slice(0, at + 1);
}

/** `texts`: of files that were read before, by their paths. */
function checksOf(
  root: string,
  texts: Map<string, string>,
  { file, rules }: { readonly file: string; readonly rules: readonly string[] },
): readonly Check[] {
  const table = readFileSync(join(root, 'docs', 'protocol-tests.md'), 'utf8').split('\n');
  const rows = table.filter((line) => rules.some((rule) => line.startsWith(`| ${rule} |`))).join('\n');
  const [owner = ''] = /^(?:libs|services)\/[^/]+\//.exec(file) ?? [];
  const named = [...rows.matchAll(/`([^`\s]+\.test\.ts)`: "/g)].map(([, tests = '']) => tests);
  const textOf = (path: string): string => readOnce(texts, join(root, path));
  const exported = [...textOf(file).matchAll(/^export (?:abstract |async )?(?:class|function\*?|const) (\w+)/gm)];
  const uses = new RegExp(String.raw`/${basename(file)}'|\b(?:${exported.map(([, name]) => name).join('|') || '!'})\b`);
  const reads = (tests: string): boolean => uses.test(textOf(tests));
  // Those that read the package as a whole, by any of its doors, reach what no test reads by itself.
  const doors = [`'@penstock/${basename(owner)}'`, `'@penstock/${basename(owner)}/testing'`, `'../src/index.ts'`];
  const starts = (tests: string): boolean => doors.some((door) => textOf(tests).includes(door));
  const name = basename(file, '.ts');
  const isNamesake = (tests: string): boolean => [`${name}.test.ts`, `${name}s.test.ts`].includes(basename(tests));
  const cites = new RegExp(String.raw`\b(?:${rules.join('|')})\b`);
  const beside = globSync(`${owner}test/**/*.test.ts`, { cwd: root })
    .toSorted()
    .filter((tests) => isNamesake(tests) || reads(tests) || starts(tests));
  // Its namesake first, then those that read it, then those of its package: each time the rules' own first.
  const nearness = (tests: string): number =>
    (isNamesake(tests) ? 0 : 16) +
    (reads(tests) ? 0 : 8) +
    (tests.startsWith(owner) ? 0 : 4) +
    (named.includes(tests) ? 0 : 2) +
    (cites.test(textOf(tests)) ? 0 : 1);
  const files = [...new Set([...named, ...beside])]
    // What needs a cluster says nothing where there is none.
    .filter(
      (tests) => /^(libs|services)\//.test(tests) && !/\.long\.|\/lab\//.test(tests) && existsSync(join(root, tests)),
    )
    .map((tests) => ({ tests, nearness: nearness(tests) }))
    .toSorted((a, b) => a.nearness - b.nearness)
    .slice(0, TESTS_MAX);
  return [...files.map(({ tests }) => ({ tests })), ...(SIMULATED.test(file) ? [{ worlds: WORLDS }] : [])];
}

function readOnce(texts: Map<string, string>, path: string): string {
  let text = texts.get(path);
  if (text === undefined) texts.set(path, (text = readFileSync(path, 'utf8')));
  return text;
}
