/**
 * The command of the mutants: breaks rules in the production code, and fails where no test notices it.
 *   npm run mutate                                   every mutant that is written by hand, at least two of each rule
 *   npm run mutate -- --only P12 [--only P15]        those of some rules
 *   npm run mutate -- --list                         only names them
 *   npm run mutate -- --jobs 2                       so many at a time; default 1
 *   npm run mutate -- --sample 150 [--seed 7]        adds as many that operators make of the files that hold the rules
 *   npm run mutate -- --made --sample 60             only what operators make
 *   npm run mutate -- --count 300                    as many in all, what is written by hand among them
 *   npm run mutate -- --night                        200 in all, spread over the rules, each night another sample; its seed is printed
 *   npm run mutate -- --night --part 2/4             the second quarter of them
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Random } from '../support/random.ts';
import { titleOf, whyNotFound } from './mutant.ts';
import { mutants } from './mutants.ts';
import { sampled } from './operators.ts';
import { tryMutants, type Tried } from './session.ts';

const root = join(import.meta.dirname, '..', '..');
const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    list: { type: 'boolean' },
    jobs: { type: 'string' },
    sample: { type: 'string' },
    made: { type: 'boolean' },
    count: { type: 'string' },
    night: { type: 'boolean' },
    part: { type: 'string' },
    seed: { type: 'string' },
  },
});

/** Of a night: enough to come by every rule, and over by the morning. */
const NIGHT_COUNT = 200;
const DAY_MS = 86_400_000;

function numberOf(name: 'jobs' | 'sample' | 'count' | 'seed', otherwise: number): number {
  const number = values[name] === undefined ? otherwise : Number(values[name]);
  if (Number.isSafeInteger(number) && number >= 0) return number;
  console.error(`--${name} is '${values[name] ?? ''}', which is no whole number`);
  process.exit(2);
}

const isNight = values.night === true;
const seed = numberOf('seed', isNight ? Math.floor(Date.now() / DAY_MS) : 1);
const isWanted = ({ rule }: { readonly rule: string }): boolean => values.only?.includes(rule) ?? true;
const written = values.made === true ? [] : mutants.filter(isWanted);
const count = numberOf('count', isNight ? NIGHT_COUNT : 0);
const sample = numberOf('sample', Math.max(0, count - written.length));
const chosen = partOf([...written, ...sampled(root, new Random(seed), sample, isWanted)]);
if (chosen.length === 0) {
  console.error(
    `no mutant is of ${values.only?.join(', ') ?? 'any rule'}: name rules as docs/protocols.md does, P1 to P37`,
  );
  process.exit(2);
}
process.exitCode = values.list === true ? list() : await tryAll();

/** Each so manieth: every part has of all rules. */
function partOf<T>(all: readonly T[]): readonly T[] {
  if (values.part === undefined) return all;
  const [, part = 0, parts = 0] = /^(\d+)\/(\d+)$/.exec(values.part)?.map(Number) ?? [];
  if (part >= 1 && part <= parts) return all.filter((_, index) => index % parts === part - 1);
  console.error(`--part is '${values.part}': write 2/4 for the second of four`);
  process.exit(2);
}

function list(): number {
  for (const mutant of chosen) console.log(`${titleOf(mutant)} (${mutant.file})`);
  const lost = chosen.flatMap((mutant) => whyNotFound(root, mutant) ?? []);
  for (const why of lost) console.log(`error: ${why}`);
  return lost.length > 0 ? 1 : 0;
}

async function tryAll(): Promise<number> {
  const startedAt = performance.now();
  const all = await tryMutants({ root, mutants: chosen, jobs: numberOf('jobs', 1), tried: tell });
  const lived = all.filter(({ fate }) => fate.kind === 'lived');
  const errors = all.filter(({ fate }) => fate.kind === 'error');
  for (const { mutant } of lived)
    console.log(`\nlived: ${titleOf(mutant)}\n  ${mutant.file}\n- ${mutant.find.trim()}\n+ ${mutant.replace.trim()}`);
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(0);
  const killed = all.length - lived.length - errors.length;
  console.log(
    `\n${all.length} mutants in ${seconds} s, seed ${seed}: ${killed} killed, ${lived.length} lived, ${errors.length} could not be tried`,
  );
  return lived.length + errors.length > 0 ? 1 : 0;
}

function tell({ mutant, fate, seconds }: Tried): void {
  const why = fate.kind === 'killed' ? ` by ${fate.by}: ${fate.why}` : fate.kind === 'error' ? `: ${fate.why}` : '';
  console.log(`${fate.kind.padEnd(6)} ${seconds.toFixed(0).padStart(4)} s  ${titleOf(mutant)}${why.slice(0, 240)}`);
}
