/** Files of the corpus with words put in their places that nobody expects there. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
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
  it('is translated or refused, and what is taken out so that the rest may stand is told', () => {
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
