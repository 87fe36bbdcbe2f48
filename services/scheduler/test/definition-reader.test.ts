import { describe, expect, it } from 'vitest';
import { Unavailable } from '@penstock/errors';
import { parsePipeline } from '@penstock/pipeline';
import { BadPipeline, Definitions } from '@penstock/scheduler/testing';
import { DefinitionReader } from '../src/shell/definition-reader.ts';

const LARGE = 'pipeline: {name: large}\nstages: {a: {run: x, env: {constructor: y}}}\n#'.padEnd(4_000, '.');
const SMALL = 'pipeline: {name: small}\nstages: {a: {run: x}}\n';

const late = async (): Promise<never> => {
  throw new Unavailable('The pipeline file could not be read in time.');
};

describe('texts of runs that are read off the thread', () => {
  it('mean what they mean when they are read here', async () => {
    const reader = new DefinitionReader(new Definitions(), { warn: () => {} });
    const { definition } = await reader.read({ yaml: LARGE }, 'ada', 50_000);
    expect(definition).toEqual(new Definitions().find(LARGE).definition);
    expect(Object.getPrototypeOf(definition.stages[0]?.env)).toBe(null);
  });

  it('are one definition for all their runs, also where several ask at the same time', async () => {
    const definitions = new Definitions();
    const reader = new DefinitionReader(definitions, { warn: () => {} }, async (text) => parsePipeline(text));
    const [first, second] = await Promise.all([
      reader.read({ yaml: LARGE }, 'ada'),
      reader.read({ yaml: LARGE }, 'bob'),
    ]);
    expect(second).toBe(first);
    expect(definitions.find(LARGE)).toBe(first);
  });

  it('of a new run are unavailable where they cannot be read in time', async () => {
    const reader = new DefinitionReader(new Definitions(), { warn: () => {} }, late);
    await expect(reader.read({ yaml: LARGE }, 'ada')).rejects.toThrow(Unavailable);
  });

  it('that were given up are read on, and not read again for who comes again', async () => {
    const { promise, resolve } = Promise.withResolvers<ReturnType<typeof parsePipeline>>();
    let asked = 0;
    const reader = new DefinitionReader(new Definitions(), { warn: () => {} }, (text) => {
      asked += 1;
      return promise.then(() => parsePipeline(text));
    });
    await expect(reader.read({ yaml: LARGE }, 'ada', 1)).rejects.toThrow('in time');
    const again = reader.read({ yaml: LARGE }, 'ada');
    resolve(parsePipeline(LARGE));
    expect((await again).definition.name).toBe('large');
    expect(asked).toBe(1);
  });

  it('of a run that exists are read all the same, with a warning', async () => {
    const warnings: string[] = [];
    const reader = new DefinitionReader(
      new Definitions(),
      { warn: (_fields, message) => void warnings.push(message) },
      late,
    );
    expect((await reader.readAgain({ yaml: LARGE }, 3)).definition.name).toBe('large');
    expect(warnings).toHaveLength(1);
    await expect(reader.readAgain({ yaml: LARGE.replace('name', 'nom') }, 3)).rejects.toThrow(BadPipeline);
  });

  it('of a run that exists are good where a rule has come since', async () => {
    const dot = "pipeline: {name: dot}\nstages: {'.': {run: x, artifacts: dist/**}}\n";
    expect(parsePipeline(dot).ok).toBe(false);
    const reader = new DefinitionReader(new Definitions(), { warn: () => {} });
    for (const yaml of [dot, `${dot}#`.padEnd(4_000, '.')])
      expect((await reader.readAgain({ yaml }, 3)).definition.stages.map(({ name }) => name)).toEqual(['.']);
  });

  it('of a run that exists give way to what else has to be done, however small they are', async () => {
    const reader = new DefinitionReader(new Definitions(), { warn: () => {} });
    const done: string[] = [];
    setImmediate(() => done.push('what else there was'));
    await reader.readAgain({ yaml: SMALL }, 0);
    done.push('read');
    expect(done).toEqual(['what else there was', 'read']);
  });

  it('are asked for by the partition that restores their runs, those that are small excepted', async () => {
    const keys: string[] = [];
    const reader = new DefinitionReader(new Definitions(), { warn: () => {} }, async (text, { key }) => {
      keys.push(key);
      return parsePipeline(text);
    });
    await Promise.all([
      reader.readAgain({ yaml: SMALL }, 1),
      reader.readAgain({ yaml: LARGE }, 2),
      reader.readAgain({ yaml: `${LARGE}.` }, 3),
    ]);
    expect(keys.toSorted()).toEqual(['partition 2', 'partition 3']);
  });
});
