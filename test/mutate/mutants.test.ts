import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Random } from '../support/random.ts';
import { titleOf, whyNotFound, type Mutant } from './mutant.ts';
import { equivalents } from './equivalents.ts';
import { mutants } from './mutants.ts';
import { sampled } from './operators.ts';

const root = join(import.meta.dirname, '..', '..');
const RULES = Array.from({ length: 37 }, (_, index) => `P${index + 1}`);
/** docs/protocols.md names files that hold them; of the others it says what is built of their subject. */
const HELD = RULES.filter((rule) => rule !== 'P32' && rule !== 'P33');

/** Of operators, as many as there are; made once. */
let everyOne: readonly Mutant[] | undefined;
const all = (): readonly Mutant[] => (everyOne ??= sampled(root, new Random(5), 100_000, () => true));

describe('the mutants', () => {
  it('are at least two of each rule', () => {
    const few = RULES.filter((rule) => mutants.filter((mutant) => mutant.rule === rule).length < 2);
    expect(few).toEqual([]);
    expect(mutants.filter(({ rule }) => !RULES.includes(rule))).toEqual([]);
  });

  it('replace text that stands once in the production code, by another one', () => {
    expect(mutants.flatMap((mutant) => whyNotFound(root, mutant) ?? [])).toEqual([]);
    expect(mutants.filter(({ find, replace }) => find === replace)).toEqual([]);
    expect(mutants.filter(({ file }) => !/^(libs|services)\/[^/]+\/src\//.test(file))).toEqual([]);
  });

  it('name tests that exist, with titles that stand in them', () => {
    const checks = mutants.flatMap((mutant) => {
      expect(mutant.noticedBy.length, titleOf(mutant)).toBeGreaterThan(0);
      return mutant.noticedBy.flatMap((check) => ('tests' in check ? [check] : []));
    });
    const missing = checks.filter(
      ({ tests, titles = [] }) =>
        !existsSync(join(root, tests)) ||
        titles.some((title) => !readFileSync(join(root, tests), 'utf8').includes(title)),
    );
    expect(missing).toEqual([]);
  });

  it('are made by operators for a night as well: the same ones for the same seed, each with something that may notice it', () => {
    const [some = [], same = []] = [1, 2].map(() => sampled(root, new Random(5), 150, () => true));
    expect(some).toHaveLength(150);
    expect(same.map(titleOf)).toEqual(some.map(titleOf));
    for (const mutant of some) {
      expect(whyNotFound(root, mutant)).toBeUndefined();
      expect(mutant.noticedBy.length, titleOf(mutant)).toBeGreaterThan(0);
    }
  });

  it('of a file are looked for first by the tests that have its name', () => {
    const firstOf = (file: string): unknown => all().find((mutant) => mutant.file === file)?.noticedBy[0];
    expect(firstOf('services/scheduler/src/shell/projector.ts')).toEqual({
      tests: 'services/scheduler/test/projector.test.ts',
    });
    expect(firstOf('libs/run-client/src/owners.ts')).toEqual({ tests: 'libs/run-client/test/owners.test.ts' });
  });

  it('of a night are of every rule that files hold: the rules take turns', () => {
    const night = sampled(root, new Random(5), 4 * HELD.length, ({ rule }) => HELD.includes(rule));
    expect(HELD.filter((rule) => night.filter((mutant) => mutant.rule === rule).length < 3)).toEqual([]);
  });

  it('of operators that change nothing name lines that stand in their files, each with why', () => {
    const lost = equivalents.filter(
      ({ file, line }) =>
        !readFileSync(join(root, file), 'utf8')
          .split('\n')
          .some((each) => each.trim() === line),
    );
    expect(lost).toEqual([]);
    expect(equivalents.filter(({ why }) => why.length < 20)).toEqual([]);
    const left = equivalents.filter(({ file, operator, line, within = '' }) =>
      all().some(
        (made) =>
          made.file === file &&
          made.breaks.startsWith(`${operator} in ${within}`) &&
          made.find.trimEnd().endsWith(line),
      ),
    );
    expect(left).toEqual([]);
  });
});
