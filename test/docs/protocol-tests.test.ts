/** `docs/protocol-tests.md` names tests that exist, for every rule. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '..', '..');
const TABLE = readFileSync(join(ROOT, 'docs', 'protocol-tests.md'), 'utf8');
const RULES = 37;

/** Titles as they are, whichever quotes they stand in. */
function titlesOf(file: string): string {
  return existsSync(join(ROOT, file)) ? readFileSync(join(ROOT, file), 'utf8').replaceAll(/\\(['"`])/g, '$1') : '';
}

describe('docs/protocol-tests.md', () => {
  it('every test that it names exists', () => {
    const named = [...TABLE.matchAll(/`([^`\s]+\.ts)`: "([^"]+)"/g)];
    expect(named.length).toBeGreaterThan(3 * RULES);
    const missing = named.filter(([, file = '', title = '']) => !titlesOf(file).includes(title)).map(([text]) => text);
    expect(missing).toEqual([]);
  });

  it('every rule has tests, or says when they come', () => {
    const without = Array.from({ length: RULES }, (_, index) => `P${index + 1}`).filter((rule) => {
      const row = TABLE.split('\n').find((line) => line.startsWith(`| ${rule} |`));
      return row === undefined || !(row.includes('.test.ts`: "') || row.includes('| later |'));
    });
    expect(without).toEqual([]);
  });
});
