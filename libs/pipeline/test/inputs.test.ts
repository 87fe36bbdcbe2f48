import { describe, expect, it } from 'vitest';
import { parsePipeline, resolveInputs, type PipelineDefinition } from '../src/index.ts';

const FILE = `
pipeline: {name: release}
inputs:
  version: {type: string, required: true, description: what to release}
  target: {type: choice, options: [staging, production], default: staging}
  dry-run: {type: boolean, default: false}
  count: {type: number}
  note:
stages:
  a: {run: 'true'}
`;

function definitionOf(text: string): PipelineDefinition {
  const parsed = parsePipeline(text);
  if (!parsed.ok) throw new Error(parsed.diagnostics.map(({ message }) => message).join('; '));
  return parsed.definition;
}

const release = definitionOf(FILE);
const resolve = (given: Record<string, string>, definition = release) =>
  resolveInputs(definition, new Map(Object.entries(given)));
const faultOf = (given: Record<string, string>, definition = release): string | undefined => {
  const resolved = resolve(given, definition);
  return resolved.ok ? undefined : resolved.message;
};

describe('the inputs of a run', () => {
  it('are a value for each that the file declares, in its order: given, else the default, else the empty text', () => {
    const resolved = resolve({ note: 'x', version: '1.4.0' });
    expect(resolved).toEqual({
      ok: true,
      values: { version: '1.4.0', target: 'staging', 'dry-run': 'false', count: '', note: 'x' },
    });
    expect(resolved.ok && Object.keys(resolved.values)).toEqual(['version', 'target', 'dry-run', 'count', 'note']);
  });

  it('do not change when they are resolved again: a repeated create means the same', () => {
    const once = resolve({ version: '1' });
    if (!once.ok) throw new Error(once.message);
    expect(resolve({ ...once.values })).toEqual(once);
  });

  it.each([
    [{}, "the input 'version' is required (what to release)"],
    [{ version: '1', verzion: '2' }, "the pipeline has no input 'verzion'; did you mean 'version'?"],
    [{ version: '1', zzz: '2' }, "the pipeline has no input 'zzz'; it takes version, target, dry-run, count, note"],
    [{ version: '1', target: 'prod' }, "the input 'target' must be one of 'staging', 'production', not 'prod'"],
    [{ version: '1', 'dry-run': 'yes' }, "the input 'dry-run' must be true or false, not 'yes'; did you mean true?"],
    [{ version: '1', count: 'many' }, "the input 'count' must be a number, not 'many'"],
    [{ version: '1', 'dry-run': '' }, "the input 'dry-run' must be true or false, not ''"],
    [{ version: 'a\0b' }, "the input 'version' holds a NUL character, which no variable can"],
    [{ version: 'x'.repeat(32 * 1024 + 1) }, "the input 'version' is longer than 32 KiB"],
    [{ ['__proto__']: 'x', version: '1' }, "the pipeline has no input '__proto__'"],
  ])('%j is refused by the name of the input at fault', (given, message) => {
    expect(faultOf(given)).toContain(message);
  });

  it('of a pipeline that declares none are none, and one given to it is refused', () => {
    const plain = definitionOf('pipeline: {name: p}\nstages: {a: {run: x}}');
    expect(resolve({}, plain)).toEqual({ ok: true, values: {} });
    expect(faultOf({ a: '1' }, plain)).toBe("the pipeline has no input 'a'; it takes none");
  });

  it('all values together are refused beyond 64 KiB of UTF-8', () => {
    const three = definitionOf('pipeline: {name: p}\ninputs: {a:, b:, c:}\nstages: {a: {run: x}}');
    const half = 'ö'.repeat(16 * 1024);
    expect(faultOf({ a: half, b: half }, three)).toBeUndefined();
    expect(faultOf({ a: half, b: half, c: 'x' }, three)).toBe('the values of all inputs take more than 64 KiB');
  });

  it('may be called like what every object has', () => {
    const odd = definitionOf('pipeline: {name: p}\ninputs: {__proto__:, constructor:}\nstages: {a: {run: x}}');
    const resolved = resolve({ ['__proto__']: '1' }, odd);
    expect(resolved.ok && Object.entries(resolved.values)).toEqual([
      ['__proto__', '1'],
      ['constructor', ''],
    ]);
  });
});
