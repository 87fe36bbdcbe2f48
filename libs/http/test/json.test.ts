import { describe, expect, it } from 'vitest';
import { JSON_DEPTH_MAX, JSON_MARKS_MAX, parseJson } from '../src/json.ts';
import { BadUserInput } from '@penstock/errors';

const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;

describe('JSON of clients', () => {
  it('is taken as JSON.parse takes it', () => {
    for (const text of ['{}', '[1,"a",null,true,1.5e3]', '"x"', '5', ' {"a":{"b":[]}} '])
      expect(parseJson(text)).toEqual(JSON.parse(text));
  });

  it('nesting is bounded, brackets inside strings are none', () => {
    expect(parseJson(nested(JSON_DEPTH_MAX))).toBeInstanceOf(Array);
    expect(() => parseJson(nested(JSON_DEPTH_MAX + 1))).toThrow(BadUserInput);
    expect(() => parseJson(nested(200_000))).toThrow(/too deep/u);
    expect(() => parseJson('['.repeat(500_000))).toThrow(/too deep/u);
    expect(parseJson(JSON.stringify({ text: `\\" ${'['.repeat(5_000)}` }))).toEqual({
      text: `\\" ${'['.repeat(5_000)}`,
    });
    expect(parseJson(`[${Array.from({ length: 500 }, () => '[]').join(',')}]`)).toHaveLength(500);
  });

  it('its parts are bounded before anything is made of them, whatever they are; marks inside strings are none', () => {
    const listed = (parts: number, part: (index: number) => string): string =>
      `[${Array.from({ length: parts }, (_, index) => part(index)).join(',')}]`;
    for (const text of [
      listed(80_000, (index) => `{"z${index}":1}`),
      `{${listed(50_000, (index) => `"k${index}":1`).slice(1, -1)}}`,
      listed(400_000, () => '1'),
      listed(JSON_MARKS_MAX + 1, () => '1'),
    ])
      expect(() => parseJson(text)).toThrow(/too many parts/u);
    expect(parseJson(listed(JSON_MARKS_MAX, () => '1'))).toHaveLength(JSON_MARKS_MAX);
    expect(parseJson(JSON.stringify({ text: '[{:,'.repeat(100_000) }))).toEqual({ text: '[{:,'.repeat(100_000) });
  });

  it('a key __proto__ is refused at any depth and however it is escaped; as a value it is text', () => {
    for (const text of [
      '{"__proto__":{"isAdmin":true}}',
      '{"a":[{"__proto__":1}]}',
      '{"__pr\\u006fto__":{}}',
      '{"\\u005f_proto__":{}}',
    ])
      expect(() => parseJson(text)).toThrow(BadUserInput);
    expect(parseJson('{"a":"__proto__","constructor":{"prototype":1}}')).toEqual({
      a: '__proto__',
      constructor: { prototype: 1 },
    });
    expect(({} as { isAdmin?: boolean }).isAdmin).toBeUndefined();
  });

  it('what is no JSON is BadUserInput', () => {
    for (const text of ['', '{', 'health', '{"a":1}}', '\uFEFF{}', 'undefined', "{'a':1}"])
      expect(() => parseJson(text)).toThrow(BadUserInput);
  });
});
