/** docs/protocols.md knows every rule that is cited, and says truly where each is held. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '..', '..');
const RULES = 37;
/** The rules that are built; the others say that they are not. */
const BUILT = new Set([
  ...Array.from({ length: 25 }, (_, index) => `P${index + 1}`),
  'P26',
  'P27',
  'P28',
  'P29',
  'P30',
  'P31',
  'P34',
  'P35',
  'P36',
  'P37',
]);

const sections = new Map(
  readFileSync(join(ROOT, 'docs', 'protocols.md'), 'utf8')
    .split(/^(?=### )/m)
    .flatMap((section) => {
      const rule = /^### (P\d+) /.exec(section)?.[1];
      return rule === undefined ? [] : [[rule, section.split(/^## /m)[0] ?? ''] as const];
    }),
);
const filesOf = (section: string): string[] =>
  [...section.matchAll(/`((?:libs|services|cli)\/[^`]+)`/g)].map(([, path = '']) => path);

/** Every file of code and documentation, with the rules that it cites. */
function citations(): { readonly path: string; readonly rules: ReadonlySet<string> }[] {
  const files = ['libs', 'services', 'cli', 'deploy', 'test', 'bootstrap', 'docs'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.(ts|js|sh|bash|md)$/.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name))
      .filter((path) => !path.includes('node_modules') && !path.includes('fixtures')),
  );
  return files.map((path) => ({
    path: path.slice(ROOT.length + 1),
    rules: new Set([...readFileSync(path, 'utf8').matchAll(/\bP([1-9]\d?)\b/g)].map(([rule]) => rule)),
  }));
}

describe('docs/protocols.md', () => {
  it('has a section for each rule, and for every rule that anything cites', () => {
    expect([...sections.keys()]).toEqual(Array.from({ length: RULES }, (_, index) => `P${index + 1}`));
    const unknown = citations().flatMap(({ path, rules }) =>
      [...rules].filter((rule) => !sections.has(rule)).map((rule) => `${path} cites ${rule}`),
    );
    expect(unknown).toEqual([]);
  });

  it('says of each built rule what it closes and where it is held, in files that exist and cite it', () => {
    for (const [rule, section] of [...sections].filter(([each]) => BUILT.has(each))) {
      expect(section, rule).toMatch(/^\*\*Closes\*\* /m);
      expect(section, rule).toMatch(/^\*\*Held\*\* in `/m);
      for (const path of filesOf(section)) {
        expect(existsSync(join(ROOT, path)), `${rule} names ${path}`).toBe(true);
        expect(readFileSync(join(ROOT, path), 'utf8'), `${path} does not cite ${rule}`).toMatch(
          new RegExp(`\\b${rule}\\b`),
        );
      }
    }
  });

  it('says of the others that they are not built, and no source cites them', () => {
    const others = [...sections].filter(([rule]) => !BUILT.has(rule));
    for (const [rule, section] of others) expect(section.replaceAll('\n', ' '), rule).toMatch(/not built yet/i);
    const cited = citations()
      .filter(({ path }) => /^(libs|services|cli|deploy)\//.test(path))
      .flatMap(({ path, rules }) => others.flatMap(([rule]) => (rules.has(rule) ? [`${path} cites ${rule}`] : [])));
    expect(cited).toEqual([]);
  });
});
