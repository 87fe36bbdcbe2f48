import { afterEach, describe, expect, it } from 'vitest';
import { Unavailable } from '@penstock/errors';
import {
  definitionBytes,
  parseManifest,
  parsePipeline,
  parseRemembered,
  type ResolvedExtension,
} from '@penstock/pipeline';
import { ParsePool, type ParsePoolOptions } from '../src/index.ts';
import type { ParseOptions } from '../src/parse-task.ts';

const FAKE = new URL('./fake-worker.ts', import.meta.url);
const MINUTE = 60_000;

const pools: ParsePool[] = [];
afterEach(() => Promise.all(pools.splice(0).map((pool) => pool.close())));

function poolOf(options: ParsePoolOptions): ParsePool {
  const pool = new ParsePool(options);
  pools.push(pool);
  return pool;
}

const fake = (options: ParsePoolOptions = {}): ParsePool => poolOf({ inlineLengthMax: 0, workerUrl: FAKE, ...options });
const stages = (count: number): string =>
  `pipeline: {name: p}\nstages:\n${Array.from({ length: count }, (_, index) => `  s${index}:\n    run: echo "\${{ run.id }}"\n`).join('')}`;

describe('a pool of threads that read files', () => {
  it('gives the result that reading them here would give, good or bad', async () => {
    const pool = poolOf({ inlineLengthMax: 0 });
    for (const text of [stages(300), 'pipeline: {name: p}\nstages: {__proto__: {run: x}}\n', 'a: [', stages(2_001)]) {
      expect(await pool.parse(text, {}, 'k', MINUTE)).toEqual(parsePipeline(text));
    }
  });

  it('reads with the options that it is given', async () => {
    const text = 'pipeline: {name: p}\nstages: {a: {run: "echo ${{ webhook.ref }}"}}\n';
    const pool = poolOf({ inlineLengthMax: 0 });
    expect((await pool.parse(text, { template: true }, 'k', MINUTE)).ok).toBe(true);
    expect((await pool.parse(text, {}, 'k', MINUTE)).ok).toBe(false);
  });

  it('ends a thread that reads a file for too long, and reads the next ones with a new one', async () => {
    const pool = fake({ readingMsMax: 1_000 });
    const stuck = pool.parse('stuck', {}, 'a', MINUTE);
    const next = pool.parse('next', {}, 'a', MINUTE);
    await expect(stuck).rejects.toThrow(Unavailable);
    expect(await next).toEqual({ ok: false, diagnostics: [{ message: 'next' }] });
  });

  it('does not count the start of a thread as reading, and has it started before the first file where that is asked', async () => {
    const slow = new URL('./slow-worker.ts', import.meta.url);
    const pool = fake({ readingMsMax: 100, workerUrl: slow });
    expect(await pool.parse('first', {}, 'a', MINUTE)).toMatchObject({ ok: false });
    const warm = fake({ workerUrl: slow });
    await warm.warm();
    // The thread would need longer than this to start.
    expect(await warm.parse('first', {}, 'a', 2_400)).toMatchObject({ ok: false });
  });

  it('is done with warming where a thread does not start at all', async () => {
    const pool = fake({ workerUrl: new URL('./no-such-worker.ts', import.meta.url) });
    await expect(pool.warm()).resolves.toBeUndefined();
  });

  it('answers for a thread that crashes, and reads the next ones with a new one', async () => {
    const pool = fake();
    const crash = pool.parse('crash', {}, 'a', MINUTE);
    const next = pool.parse('next', {}, 'a', MINUTE);
    await expect(crash).rejects.toThrow('could not be read');
    expect(await next).toMatchObject({ ok: false });
  });

  it('lets keys take turns, so that many files of one do not keep another waiting', async () => {
    const pool = fake();
    const order: string[] = [];
    const parse = (text: string, key: string): Promise<void> =>
      pool.parse(text, {}, key, MINUTE).then(() => void order.push(text));
    await Promise.all([parse('a1', 'a'), parse('a2', 'a'), parse('a3', 'a'), parse('a4', 'a'), parse('b1', 'b')]);
    expect(order).toEqual(['a1', 'a2', 'b1', 'a3', 'a4']);
  });

  it('refuses what is over the bound of a key, and takes what others have', async () => {
    const pool = fake({ waitingPerKeyMax: 2 });
    const taken = ['1', '2', '3'].map((text) => pool.parse(text, {}, 'a', MINUTE));
    await expect(pool.parse('4', {}, 'a', MINUTE)).rejects.toThrow('Too many pipeline files');
    expect(await pool.parse('5', {}, 'b', MINUTE)).toMatchObject({ ok: false });
    await Promise.all(taken);
  });

  it('reads a file once that many of a key ask for at once: they take one place together', async () => {
    const pool = fake({ waitingPerKeyMax: 1 });
    const first = pool.parse('first', {}, 'a', MINUTE);
    const extensions = (): ResolvedExtension[] => [
      { uses: 'x/y@1', id: 'x/y', version: '1.0.0', hash: '0', manifest: 'm' },
    ];
    const asked = Array.from({ length: 20 }, () => pool.parse('same', { extensions: extensions() }, 'a', MINUTE));
    const [read, ...others] = await Promise.all(asked);
    expect(others.every((other) => other === read)).toBe(true);
    await first;
  });

  it.each<[string, ParseOptions]>([
    ['another extension', { extensions: [{ uses: 'x/y@1', id: 'x/y', version: '1.0.1', hash: '1', manifest: 'n' }] }],
    ['other refusals', { refusals: new Map([['x/y@1', 'There is none.']]) }],
    ['the rules of another time', { standing: true }],
  ])('reads it for each of those that ask with %s', async (_, options) => {
    const pool = fake();
    const [one, other] = await Promise.all([
      pool.parse('same', { extensions: [], refusals: new Map() }, 'a', MINUTE),
      pool.parse('same', options, 'a', MINUTE),
    ]);
    expect(one).not.toBe(other);
  });

  it('keeps a file in its place for the others when one of those who wait for it gives up', async () => {
    const pool = fake({ readingMsMax: 1_000 });
    const stuck = pool.parse('stuck', {}, 'a', MINUTE).catch(() => 'ended');
    const [hurried, patient] = [pool.parse('same', {}, 'a', 1), pool.parse('same', {}, 'a', MINUTE)];
    await expect(hurried).rejects.toThrow('in time');
    expect(await patient).toMatchObject({ ok: false });
    expect(await stuck).toBe('ended');
  });

  it('refuses what is over a quarter of what is free for all that waits, has room for others, and takes files again when others are read', async () => {
    const pool = fake({ waitingLengthMax: 16 });
    const taken = [pool.parse('1234', {}, 'a', MINUTE)];
    await expect(pool.parse('5', {}, 'a', MINUTE)).rejects.toThrow('Too many pipeline files');
    await expect(pool.parse('5678', {}, 'b', MINUTE)).rejects.toThrow('Too many pipeline files');
    taken.push(pool.parse('567', {}, 'b', MINUTE), pool.parse('89', {}, 'c', MINUTE));
    await Promise.all(taken);
    expect(await pool.parse('5678', {}, 'b', MINUTE)).toMatchObject({ ok: false });
  });

  it('gives up on a file that has waited until its deadline, without ending the thread of another', async () => {
    const pool = fake({ readingMsMax: 1_000 });
    const stuck = pool.parse('stuck', {}, 'a', MINUTE);
    await expect(pool.parse('late', {}, 'b', 50)).rejects.toThrow('in time');
    await expect(stuck).rejects.toThrow('in time');
  });

  it('reads on what is late, so that whoever asks again has it, and a text that waits behind itself is read once', async () => {
    const text = `${stages(2_000)}# read on\n`;
    const pool = poolOf({ inlineLengthMax: 0 });
    const asked = [pool.parse(text, {}, 'a', 1), pool.parse(text, {}, 'a', MINUTE), pool.parse(text, {}, 'b', MINUTE)];
    const [first, second, third] = await Promise.allSettled(asked);
    expect(first?.status).toBe('rejected');
    expect(second).toMatchObject({ status: 'fulfilled', value: { ok: true } });
    expect(third?.status === 'fulfilled' && third.value).toBe(second?.status === 'fulfilled' && second.value);
  });

  it('remembers a good file for whoever reads it next, its records without prototypes', async () => {
    const text = 'pipeline: {name: remembered}\nstages: {a: {run: x, env: {constructor: y}}}\n';
    const result = await poolOf({ inlineLengthMax: 0 }).parse(text, {}, 'k', MINUTE);
    expect(parseRemembered(text)).toBe(result);
    const env = result.ok ? result.definition.stages[0]?.env : undefined;
    expect(env === undefined ? 'none' : Object.getPrototypeOf(env)).toBe(null);
  });

  it('takes the prototypes off what was read with options, and remembers it for nobody else', async () => {
    const text = 'pipeline: {name: p}\nstages: {a: {run: "echo ${{ webhook.ref }}", env: {constructor: y}}}\n';
    const result = await poolOf({ inlineLengthMax: 0 }).parse(text, { template: true }, 'k', MINUTE);
    const env = result.ok ? result.definition.stages[0]?.env : undefined;
    expect(env === undefined ? 'none' : Object.getPrototypeOf(env)).toBe(null);
    expect(parseRemembered(text).ok).toBe(false);
  });

  it('has it measured on the thread how much a file comes to, and nobody measures it again', async () => {
    const pool = fake({ workerUrl: new URL('./measuring-worker.ts', import.meta.url) });
    const result = await pool.parse(stages(3), {}, 'k', MINUTE);
    expect(result.ok && definitionBytes(result.definition)).toBe(42);
  });

  it('is told by its own thread what that has measured', async () => {
    const text = stages(300);
    const result = await poolOf({ inlineLengthMax: 0 }).parse(text, { template: true }, 'k', MINUTE);
    const here = parsePipeline(text);
    expect(result.ok && definitionBytes(result.definition)).toBe(here.ok && definitionBytes(here.definition));
  });

  it('finds the extensions that a file uses as reading it here would', async () => {
    const pool = poolOf({ inlineLengthMax: 0 });
    const text = `${stages(300)}  used: {uses: test/vitest@^1}\n`;
    expect(await pool.uses(text, 'k', MINUTE)).toEqual(['test/vitest@^1']);
    expect(await pool.uses('uses: [', 'k', MINUTE)).toEqual([]);
  });

  it('reads a manifest as reading it here would, good or bad, and only a small one without matrix and aliases here', async () => {
    const head = 'id: build/node\nversion: 1.0.0\ndescription: builds\n';
    const small = `${head}run: make\n`;
    const large = `${head}${stages(300).slice('pipeline: {name: p}\n'.length)}`;
    const pool = poolOf({});
    for (const text of [small, large, `${large}shell: sh\n`, 'id: ['])
      expect(await pool.manifest(text, 'k', MINUTE)).toEqual(parseManifest(text));
    expect(parseManifest(large).ok).toBe(true);
    const elsewhere = poolOf({ workerUrl: FAKE });
    const matrix = `${head}stages: {a: {run: x, matrix: {n: [1, 2]}}}\n`;
    for (const text of [large, matrix])
      expect(await elsewhere.manifest(text, 'k', MINUTE)).toMatchObject({ diagnostics: [{ message: text }] });
    expect(await elsewhere.manifest(small, 'k', MINUTE)).toMatchObject({ ok: true });
  });

  it('knows of a file that was read, and is good by itself, that it uses nothing', async () => {
    const text = `${stages(300)}# it uses nothing\n`;
    expect(parseRemembered(text).ok).toBe(true);
    expect(await fake().uses(text, 'k', MINUTE)).toEqual([]);
  });

  it('reads a file for what it uses once, unless it uses more than is remembered', async () => {
    const pool = poolOf({ inlineLengthMax: 0 });
    const using = (count: number): string =>
      `${stages(3)}${Array.from({ length: count }, (_, index) => `  u${index}: {uses: test/${'n'.repeat(50)}-${index}@^1}\n`).join('')}`;
    const few = await pool.uses(using(2), 'k', MINUTE);
    expect(few).toHaveLength(2);
    expect(await pool.uses(using(2), 'another', MINUTE)).toBe(few);
    const many = await pool.uses(using(200), 'k', MINUTE);
    expect(await pool.uses(using(200), 'k', MINUTE)).not.toBe(many);
  });

  it('never reads a file with a matrix here, however small: it may be a thousand stages', async () => {
    const text = 'pipeline: {name: p}\nstages: {a: {run: x, matrix: {n: [1, 2]}}}\n';
    expect(await poolOf({ workerUrl: FAKE }).parse(text, {}, 'k', MINUTE)).toEqual({
      ok: false,
      diagnostics: [{ message: text }],
    });
  });

  it.each([
    'stages: {a: &a {run: x}, b: *a}',
    'stages:\n  a: {run: &>x [x]}\n  b: {run: *>x}',
    '{"stages":{"a":&a{"run":"x"},"b":*a}}',
    '&a\nstages:\n- *a',
  ])('nor one with aliases, each of which stands for more: %j', async (text) => {
    expect(poolOf({}).isReadAtOnce(text, {})).toBe(false);
  });

  it('reads files at once in which such signs are of a shell or a pattern', () => {
    const pool = poolOf({});
    for (const run of ['make && make test 2>&1', 'cp *.js out', 'make &>log'])
      expect(pool.isReadAtOnce(`pipeline: {name: p}\nstages:\n  a:\n    run: ${run}\n`, {})).toBe(true);
  });

  it('reads a small file at once, without a thread', async () => {
    const pool = poolOf({ workerUrl: new URL('./no-such-worker.ts', import.meta.url) });
    expect(await pool.parse(stages(3), {}, 'k', MINUTE)).toMatchObject({ ok: true });
  });
});
