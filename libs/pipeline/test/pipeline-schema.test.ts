/** docs/pipeline.schema.json, by a JSON Schema validator: what the parser takes it takes, and what it refuses the parser refuses. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { parsePipeline, usesOf } from '../src/index.ts';
import { LEVELS, pipelineSchema } from './pipeline-schema.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const FIXTURES = join(import.meta.dirname, 'fixtures');
const schema = pipelineSchema(JSON.parse(readFileSync(join(ROOT, 'docs', 'extension.schema.json'), 'utf8')));
const isValid = new Ajv2020({ strict: false, allErrors: false }).compile(schema);

const textsOf = (kind: 'accepted' | 'refused'): (readonly [name: string, text: string])[] =>
  readdirSync(join(FIXTURES, kind))
    .filter((name) => name.endsWith('.yaml'))
    .map((name) => [name, readFileSync(join(FIXTURES, kind, name), 'utf8')] as const);

const blocks = [...readFileSync(join(ROOT, 'docs', 'pipeline.md'), 'utf8').matchAll(/^```yaml\n(.*?)^```$/gms)].map(
  ([, text = ''], index) => [`docs/pipeline.md, ${index + 1}`, text] as const,
);

describe('docs/pipeline.schema.json', () => {
  it('is made from the code (made anew with -u)', async () => {
    await expect(`${JSON.stringify(schema, null, 2)}\n`).toMatchFileSnapshot(
      join(ROOT, 'docs', 'pipeline.schema.json'),
    );
  });

  it.each(LEVELS)('%s are the keys of the code', (path, keys) => {
    const at = path.split('.').reduce<unknown>((value, key) => (value as Record<string, unknown>)[key], schema);
    expect(Object.keys(at as object).toSorted()).toEqual([...keys].toSorted());
  });

  it.each([...textsOf('accepted'), ...blocks])('takes %s', (_, text) => {
    expect(isValid(parse(text)), JSON.stringify(isValid.errors)).toBe(true);
  });

  it('refuses every fixture that is refused for a key that there is not', () => {
    const unknown = textsOf('refused').filter(([, text]) => /^# refused \S+ unknown key/m.test(text));
    expect(unknown.length).toBeGreaterThan(20);
    const taken = unknown.filter(([, text]) => isValid(parse(text)) === true);
    expect(taken.map(([name]) => name)).toEqual([]);
  });

  it('refuses no file that the parser takes, whatever key of it is missing or called otherwise', () => {
    const files = textsOf('accepted').map(([, text]) => parse(text) as object);
    fc.assert(
      fc.property(fc.nat(), fc.nat(), fc.boolean(), (which, at, isRemoved) => {
        const file = structuredClone(files[which % files.length]) as Record<string, unknown>;
        const places = mapsIn(file).flatMap((map) => Object.keys(map).map((key) => [map, key] as const));
        const [map, key] = places[at % places.length] ?? [file, 'stages'];
        const value = map[key];
        delete map[key];
        if (!isRemoved) map[`${key}_x`] = value;
        const text = stringify(file, { aliasDuplicateObjects: false });
        const unresolved = usesOf(text).length > 0 ? ({ unresolved: 'accept' } as const) : {};
        expect(isValid(file) === true || !parsePipeline(text, unresolved).ok, text).toBe(true);
      }),
      { numRuns: 300, seed: 28 },
    );
  });
});

function mapsIn(value: unknown): Record<string, unknown>[] {
  if (Array.isArray(value)) return value.flatMap(mapsIn);
  if (typeof value !== 'object' || value === null) return [];
  return [value as Record<string, unknown>, ...Object.values(value).flatMap(mapsIn)];
}
