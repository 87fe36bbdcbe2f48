import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Document, parse as parseYaml } from 'yaml';
import { formatDiagnostics, parsePipeline } from '../src/index.ts';

const FIXTURES = join(import.meta.dirname, 'fixtures');
const seeds = ['accepted', 'refused'].flatMap((folder) =>
  readdirSync(join(FIXTURES, folder)).map((name) => readFileSync(join(FIXTURES, folder, name), 'utf8')),
);

const PIECES = [
  '\n',
  '\n',
  '\n  ',
  '\n    ',
  '\n      ',
  ' ',
  '\t',
  ':',
  ': ',
  '- ',
  '? ',
  ', ',
  '[',
  ']',
  '{',
  '}',
  '"',
  "'",
  '|',
  '>',
  '|2-\n',
  '&a ',
  '*a',
  '!t ',
  '!!str ',
  '#',
  ' # ',
  '---\n',
  '...\n',
  '%YAML 1.2\n',
  '<<: ',
  '\\',
  '\r\n',
  '\uFEFF',
  'pipeline',
  'name',
  'stages',
  'run',
  'after',
  'when',
  'env',
  'matrix',
  'include',
  'exclude',
  'outputs',
  'retry',
  'max',
  'timeout',
  'build',
  'test',
  '${{ ',
  ' }}',
  'stages.build.outputs.x',
  'matrix.a',
  "['",
  "']",
  '==',
  '&&',
  '!',
  '(',
  ')',
  'success()',
  'x',
  '1',
  'true',
  '~',
  '🚀',
  '\u2028',
  '__proto__',
];

/** What holds for every text: an answer, and for a bad file at least one problem, within the text and in its order. */
function holds(text: string): void {
  const result = parsePipeline(text, { template: true });
  expect(parsePipeline(text, { template: true })).toEqual(result);
  const diagnostics = result.ok ? [] : result.diagnostics;
  expect(result.ok ? result.definition.stages.length : diagnostics.length).toBeGreaterThan(0);
  expect(JSON.parse(JSON.stringify(result))).toEqual(result);
  const lines = text.replace(/^\uFEFF/, '').split('\n');
  let before = 0;
  for (const { line, column, message } of diagnostics) {
    expect(line).toBeGreaterThanOrEqual(before);
    expect(line).toBeLessThanOrEqual(lines.length);
    expect(column).toBeGreaterThanOrEqual(1);
    expect(column).toBeLessThanOrEqual((lines[line - 1] ?? '').length + 1);
    expect(message).not.toMatch(/undefined|\[object|NaN|\p{Cc}/u);
    before = line;
  }
  expect(formatDiagnostics(text, diagnostics, 'f')).toContain('error');
}

describe('no text crashes or hangs the parser', () => {
  it('random text is accepted or refused in bounded time', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string({ unit: 'binary', maxLength: 200 }), fc.string({ unit: 'grapheme', maxLength: 200 })),
        holds,
      ),
      { numRuns: 300 },
    );
  });

  it('pieces of YAML and of expressions in random order', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(...PIECES), { maxLength: 80 }).map((pieces) => pieces.join('')),
        holds,
      ),
      { numRuns: 600 },
    );
    fc.assert(
      fc.property(
        fc
          .array(fc.constantFrom(...PIECES), { maxLength: 40 })
          .map((pieces) => `pipeline: {name: p}\nstages:\n  build:\n    run: ${pieces.join('')}\n    outputs: [x]\n`),
        holds,
      ),
      { numRuns: 400 },
    );
  });

  it('fixtures with a piece put in, taken out or moved', () => {
    const change = fc.record({
      at: fc.double({ min: 0, max: 1, noNaN: true }),
      length: fc.nat({ max: 20 }),
      piece: fc.constantFrom('', ...PIECES),
    });
    fc.assert(
      fc.property(fc.constantFrom(...seeds), fc.array(change, { minLength: 1, maxLength: 4 }), (seed, changes) => {
        let text = seed;
        for (const { at, length, piece } of changes) {
          const from = Math.floor(at * text.length);
          text = text.slice(0, from) + piece + text.slice(from + length);
        }
        holds(text);
      }),
      { numRuns: 800 },
    );
  });

  it('one piece very often is accepted or refused in bounded time', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(...PIECES), { minLength: 1, maxLength: 4 }),
        fc.constantFrom(10, 1_000, 30_000),
        fc.constantFrom('', 'a: [', 'a: {', 'a:\n ', 'pipeline: {name: p}\nstages:\n  a:\n    run: '),
        (pieces, count, head) => {
          const result = parsePipeline(head + pieces.join('').repeat(count));
          expect(result.ok || result.diagnostics.length > 0).toBe(true);
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe('scalars mean what the yaml package says they mean', () => {
  it('names and values of env survive every style of quoting', () => {
    const value = fc
      .string({ unit: 'grapheme', minLength: 1, maxLength: 60 })
      .filter((text) => !/[\p{Cc}\p{Cs}\uFEFF\uFFFE\uFFFF]|\$\{\{/u.test(text));
    fc.assert(
      fc.property(
        value,
        fc.constantFrom('PLAIN', 'QUOTE_DOUBLE', 'QUOTE_SINGLE', 'BLOCK_LITERAL', 'BLOCK_FOLDED'),
        (text, style) => {
          const document = new Document({ pipeline: { name: 'p' }, stages: { a: { run: 'x', env: { V: text } } } });
          document.setIn(['stages', 'a', 'env', 'V'], Object.assign(document.createNode(text), { type: style }));
          const file = document.toString();
          const result = parsePipeline(file);
          expect(result.ok ? result.definition.stages[0]?.env : result.diagnostics).toEqual({
            V: [(parseYaml(file, { schema: 'failsafe' }) as { stages: { a: { env: { V: string } } } }).stages.a.env.V],
          });
        },
      ),
    );
  });
});
