/** Files of the corpus with words put in their places that nobody expects there. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parsePipeline } from '@penstock/pipeline';
import { FORMATS, migrate, UnreadableSource } from '../src/index.ts';

const CORPUS = fileURLToPath(new URL('corpus/', import.meta.url));
const CHANGED = 120;
const JUNK = [
  '[]',
  '{}',
  'null',
  '"$X"',
  '${{ secrets.x }}',
  '${{ a.b',
  'x'.repeat(300),
  '-1',
  'constructor',
  'toString',
  '{a: {b: c}}',
  '[[a]]',
  '"a\\nb"',
  '🦄',
  '$(x)',
  '*x',
  '!ref x',
  '${{ matrix.constructor }}',
];

/** Numbers from 0 to 1, the same for a seed. */
function chances(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

describe.each(FORMATS)('a damaged file of %s', (format) => {
  it('is refused, or becomes a pipeline file that is taken', () => {
    const chance = chances(format.length);
    const pick = <T>(values: readonly T[]): T | undefined => values[Math.floor(chance() * values.length)];
    const files = readdirSync(`${CORPUS}${format}`).filter((name) => name.endsWith('.yml'));
    const problems = new Set<string>();
    for (let count = 0; count < CHANGED; count++) {
      let text = readFileSync(`${CORPUS}${format}/${pick(files)}`, 'utf8');
      for (let times = chance() * 3; times > 0; times--) {
        const word = pick([...text.matchAll(/[\w./-]+/g)]);
        if (word !== undefined)
          text = `${text.slice(0, word.index)}${pick(JUNK)}${text.slice(word.index + word[0].length)}`;
      }
      try {
        for (const { message, path } of migrate(text, { file: 'x.yml', format }).problems)
          problems.add(`${path}: ${message}`);
      } catch (error) {
        if (!(error instanceof UnreadableSource)) throw error;
      }
    }
    expect([...problems]).toEqual([]);
  });
});

it('more jobs than a pipeline file may have stages are refused, before all those called alike are told apart', () => {
  const jobs = Array.from({ length: 20_000 }, (_, index) => `a${String.fromCodePoint(0x4e00 + index)}: {script: x}`);
  const text = jobs.join('\n');
  expect(() => migrate(text, { file: '.gitlab-ci.yml' })).toThrow('more than 2000 stages');
});

/** The same text for each number, below each other. */
const many = (count: number, line: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => line(index)).join('\n');
const script = (line: string): string => `on: push\njobs:\n  a:\n    steps:\n      - run: |\n          ${line}\n`;
const step = (index: number): string => `  - {name: a${index}, image: b${index}, commands: [c]}`;

/** Each of these took minutes, all memory or the stack. */
const LARGE: readonly (readonly [what: string, format: (typeof FORMATS)[number], text: () => string])[] = [
  ['expressions of a script', 'github', () => script('"${{ github.sha }}" '.repeat(30_000))],
  ['expressions that do not end', 'github', () => script('${{'.repeat(300_000))],
  ['the word of a here-document', 'github', () => script(`<<${'a'.repeat(400_000)} \${{ github.sha }}`)],
  ['here-documents of a line', 'github', () => script(`${'<<a '.repeat(200_000)} \${{ github.sha }}`)],
  ['a comment', 'github', () => script(`# ${'${{ github.sha }}'.repeat(50_000)}`)],
  [
    'keys of a cache',
    'github',
    () =>
      `on: push\njobs: {a: {steps: [{uses: actions/cache@v4, with: {path: x, key: '${'${{hashFiles('.repeat(70_000)})'}}]}}`,
  ],
  [
    'jobs that need each other',
    'github',
    () => `on: push\njobs:\n${many(12_000, (i) => `  a${i}: {needs: a${i + 1}}`)}`,
  ],
  ['negations', 'github', () => `on: push\njobs: {a: {if: "${'!'.repeat(3_900)}github.actor", steps: [{run: x}]}}`],
  ['parentheses', 'gitlab', () => `a: {script: [x], rules: [{if: '${'('.repeat(300_000)}$A${')'.repeat(300_000)}'}]}`],
  ['rules', 'gitlab', () => `a:\n  script: [x]\n  rules:\n${many(20_000, (i) => `    - {if: '$A == "${i}"'}`)}`],
  ['aliases', 'gitlab', () => `x: &a {script: [y]}\nb: [${'*a,'.repeat(55_000)}]\nc: {script: [x]}`],
  [
    'what jobs extend',
    'gitlab',
    () =>
      `.b:\n  script: [x]\n  variables:\n${many(25_000, (i) => `    A${i}: b`)}\n${many(1_900, (i) => `j${i}: {extends: .b}`)}`,
  ],
  [
    'stages with files for all after them',
    'gitlab',
    () =>
      `stages:\n${many(1_999, (i) => `  - s${i}`)}\n${many(1_999, (i) => `j${i}: {stage: s${i}, script: [x], artifacts: {paths: [x]}}`)}`,
  ],
  [
    'combinations',
    'woodpecker',
    () => `matrix:\n  include:\n${many(10_000, (i) => `    - {A: ${i}, B: ${i}}`)}\nsteps:\n${many(1_900, step)}`,
  ],
  [
    'services',
    'woodpecker',
    () => `services:\n${many(9_000, (i) => `  s${i}: {image: x}`)}\nsteps:\n${many(1_900, step)}`,
  ],
];

it.each(LARGE)('a file of very many, or very long, %s ends as a translation or a refusal', (_what, format, text) => {
  expect(['translated', 'refused']).toContain(outcomeOf(text(), format));
});

function outcomeOf(text: string, format: (typeof FORMATS)[number]): 'translated' | 'refused' {
  try {
    migrate(text, { file: 'x.yml', format });
    return 'translated';
  } catch (error) {
    if (!(error instanceof UnreadableSource)) throw error;
    return 'refused';
  }
}

/** Each rule says that none before it fits: what comes of them is longer than a condition may be. */
const MANY = Array.from({ length: 60 }, (_, index) => `'$CI_COMMIT_BRANCH == "release/${index}"'`);

describe('a job whose condition is taken out', () => {
  it.each([
    ['gitlab', `a: {script: [x], rules: [${MANY.map((text) => `{if: ${text}}`).join(', ')}]}`],
    [
      'github',
      `on: push\njobs: {a: {if: ${MANY.map((_, index) => `github.ref == 'refs/heads/release/${index}'`).join(' || ')}, steps: [{run: x}]}}`,
    ],
  ] as const)('fails before its first command, and that is told: %s', (format, text) => {
    const { notes, problems, text: made } = migrate(text, { file: 'x.yml', format });
    const parsed = parsePipeline(made);
    const [stage] = parsed.ok ? parsed.definition.stages : [];
    expect(problems).toEqual([]);
    expect(notes.map(({ what }) => what)).toEqual([expect.stringContaining("the condition of 'a': ")]);
    expect(stage?.when).toBeUndefined();
    expect(stage?.commands[0]?.script).toBe("echo 'not translated: the condition' >&2; exit 1");
  });

  it('is still asked for where somebody starts it', () => {
    const rules = MANY.map((text) => `{if: ${text}, when: manual}`).join(', ');
    const parsed = parsePipeline(migrate(`a: {script: [x], rules: [${rules}]}`, { file: '.gitlab-ci.yml' }).text);
    expect(parsed.ok && parsed.definition.stages.map(({ name, after }) => [name, after])).toEqual([
      ['start a', []],
      ['a', ['start a']],
    ]);
  });
});
