/** Files as projects have them, by their logic, and what becomes of each. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parsePipeline } from '@penstock/pipeline';
import { FORMATS, migrate, type Format, type Migration } from '../src/index.ts';

const CORPUS = fileURLToPath(new URL('corpus/', import.meta.url));
const FILES_MIN = 30;

const filesOf = (format: Format): string[] => readdirSync(`${CORPUS}${format}`).filter((name) => name.endsWith('.yml'));

function migrated(format: Format, name: string): Migration {
  const file = { github: `.github/workflows/${name}`, gitlab: '.gitlab-ci.yml', woodpecker: '.woodpecker.yml' }[format];
  return migrate(readFileSync(`${CORPUS}${format}/${name}`, 'utf8'), { file });
}

function shown({ notes, text }: Migration): string {
  const told = notes.map(
    ({ line, what, remedy }) => `# ${line}: ${what}${remedy === undefined ? '' : ` (${remedy})`}\n`,
  );
  return `${text}\n${told.join('')}`;
}

describe.each(FORMATS)('the corpus of %s', (format) => {
  it('has thirty files, each of which is known for what it is', () => {
    expect(filesOf(format).length).toBeGreaterThanOrEqual(FILES_MIN);
    expect(filesOf(format).filter((name) => migrated(format, name).format !== format)).toEqual([]);
  });

  it('becomes pipeline files that are taken', () => {
    for (const name of filesOf(format)) {
      const { problems, text } = migrated(format, name);
      expect({ name, problems }).toEqual({ name, problems: [] });
      expect({ name, ok: parsePipeline(text).ok }).toEqual({ name, ok: true });
    }
  });

  it('becomes these very files, and these are the things that are told', async () => {
    for (const name of filesOf(format))
      await expect(shown(migrated(format, name))).toMatchFileSnapshot(
        `corpus/${format}/${name.replace(/\.yml$/, '.expected.yaml')}`,
      );
  });

  it('is translated for nine tenths of its keys', () => {
    const all = filesOf(format).map((name) => migrated(format, name));
    const sum = (of: (one: Migration) => number): number => all.reduce((total, one) => total + of(one), 0);
    const share = sum(({ translated }) => translated) / sum(({ keys }) => keys);
    process.stdout.write(`${format}: ${(share * 100).toFixed(1)} % of the keys of ${all.length} files translated\n`);
    expect(share).toBeGreaterThan(0.9);
  });
});
