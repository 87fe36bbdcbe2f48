/**
 * Mutants that operators make: conditions negated, awaits dropped, bounds changed, in the files that docs/protocols.md says hold
 * a rule. What should notice them are the tests that docs/protocol-tests.md names for the rule, and for what the simulation
 * drives, its worlds. A sample of them is for a night: some change nothing that anybody could notice, and say so by living.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Random } from '../support/random.ts';
import type { Check, Mutant } from './mutant.ts';

const WORLDS = 200;
/** What the simulation drives as it is. */
const SIMULATED = /^(services\/scheduler\/src\/(partition|dispatch|admission|run)\/|libs\/run\/)/;
/** Files of tests that a mutant of one rule is given at most, the narrowest first. */
const TESTS_MAX = 5;

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
  {
    name: 'has a bound ten times as high',
    apply: (line) => replaced(line, /^((?:export )?const [A-Z_]+(?:_MS|_MAX|_AT|_MIN)? = [^;]+);$/, '$1 * 10;'),
  },
];

/** `count` of them, at most; the same ones for the same chance and code. */
export function sampled(
  root: string,
  random: Random,
  count: number,
  isWanted: (mutant: Mutant) => boolean,
): readonly Mutant[] {
  if (count === 0) return [];
  const all = heldRules(root)
    .flatMap(({ rule, file }) => mutantsOf(root, rule, file))
    .filter(isWanted);
  const chosen: Mutant[] = [];
  while (chosen.length < count && all.length > 0) chosen.push(...all.splice(random.int(all.length), 1));
  return chosen;
}

function replaced(line: string, pattern: RegExp, by: string): string | undefined {
  const broken = line.replace(pattern, by);
  return broken === line ? undefined : broken;
}

function heldRules(root: string): { readonly rule: string; readonly file: string }[] {
  const sections = readFileSync(join(root, 'docs', 'protocols.md'), 'utf8').split(/^(?=### )/m);
  return sections.flatMap((section) => {
    const rule = /^### (P\d+) /.exec(section)?.[1];
    const held = /^\*\*Held\*\* in ([^*]+)/m.exec(section)?.[1] ?? '';
    if (rule === undefined) return [];
    return [...held.matchAll(/`([^`]+\.ts)`/g)].map(([, file = '']) => ({ rule, file }));
  });
}

function mutantsOf(root: string, rule: string, file: string): Mutant[] {
  const lines = readFileSync(join(root, file), 'utf8').split('\n');
  const noticedBy = checksOf(root, rule, file);
  return lines.flatMap((line, at) => {
    if (/^\s*(\/?\*|\/\/|import|export \{|export type|readonly )/.test(line)) return [];
    return operators.flatMap(({ name, apply }) => {
      const broken = apply(line);
      if (broken === undefined) return [];
      const around = contextOf(lines, at);
      return [
        {
          rule,
          breaks: `${name} in line ${at + 1} of ${file}`,
          file,
          find: around.join('\n'),
          replace: around.map((each, index) => (index === around.length - 1 ? broken : each)).join('\n'),
          noticedBy,
        },
      ];
    });
  });
}

/** The line, with as many before it as make it the only one of its kind in the file. */
function contextOf(lines: readonly string[], at: number): readonly string[] {
  const text = lines.join('\n');
  for (let from = at; from > 0; from--) {
    const around = lines.slice(from, at + 1);
    if (text.split(around.join('\n')).length === 2) return around;
  }
  return lines.slice(0, at + 1);
}

function checksOf(root: string, rule: string, file: string): readonly Check[] {
  const table = readFileSync(join(root, 'docs', 'protocol-tests.md'), 'utf8').split('\n');
  const row = table.find((line) => line.startsWith(`| ${rule} |`)) ?? '';
  const [owner = ''] = /^(?:libs|services)\/[^/]+\//.exec(file) ?? [];
  const isNear = (tests: string): number => (tests.startsWith(owner) ? 0 : 1);
  const files = [...new Set([...row.matchAll(/`([^`\s]+\.test\.ts)`: "/g)].map(([, tests = '']) => tests))]
    .filter((tests) => /^(libs|services)\//.test(tests) && !tests.includes('.long.') && existsSync(join(root, tests)))
    .sort((a, b) => isNear(a) - isNear(b))
    .slice(0, TESTS_MAX);
  return [...files.map((tests) => ({ tests })), ...(SIMULATED.test(file) ? [{ worlds: WORLDS }] : [])];
}
