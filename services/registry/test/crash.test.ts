/** V1: a publication that is killed anywhere leaves the whole version or nothing, and nothing else after the next sweep. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { PUBLISH_STEPS } from '../src/operations/publish.ts';
import { UPLOAD_KEPT_MS } from '../src/catalogue/uploads.ts';
import type { Registry } from '../src/testing.ts';
import { hashOf, makeWorld, nobody, packageOf, publish, service, upload, type World } from './support.ts';

let world: World;
beforeAll(async () => {
  world = await makeWorld();
});
afterAll(() => world.close());

/** The files that packages lie in, those of killed uploads included. */
async function objectFiles(): Promise<string[]> {
  const entries = await readdir(join(world.folder, 'objects'), { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
}

async function sweptLater(registry: Registry) {
  const before = world.now;
  world.now += UPLOAD_KEPT_MS + 60_000;
  const swept = await registry.sweep();
  world.now = before;
  return swept;
}

/** Whole: found, listed, resolved, downloaded. Nothing: none of these. */
async function whatIsThere(
  registry: Registry,
  id: string,
  hash: string,
): Promise<'whole' | 'nothing' | readonly boolean[]> {
  const versions = await registry.versions({ caller: nobody, id, limit: 10, texts: true });
  const found = await registry.findPackage(nobody, hash);
  const bytes = found === null ? null : Buffer.concat(await Array.fromAsync(await found.read()));
  const signs = [
    (await registry.extension({ caller: nobody, id })) !== null,
    versions.length === 1 && versions[0]?.readme === '# Read me',
    registry.search({ caller: nobody, query: id, limit: 1 }).some((each) => each.id === id),
    await registry.resolve({ caller: nobody, uses: [`${id}@1`] }).then(
      ({ extensions }) => extensions[0]?.hash === hash,
      () => false,
    ),
    bytes !== null && hashOf(bytes) === hash,
  ];
  return signs.every(Boolean) ? 'whole' : signs.some(Boolean) ? signs : 'nothing';
}

it.each(PUBLISH_STEPS)("stopped after '%s'", async (step) => {
  const id = `build/stopped-after-${step.replaceAll(' ', '-')}`;
  const reached = Promise.withResolvers<void>();
  // The step never ends: nothing after it happens, no clean-up either.
  const stopped = world.registry({
    afterStep: (at) => (at === step ? (reached.resolve(), new Promise<void>(() => {})) : undefined),
  });
  const bytes = await packageOf({ id, readme: '# Read me' });
  void publish(stopped, service, { id, readme: '# Read me' });
  await reached.promise;

  const next = world.registry();
  await next.load();
  const expected = step === 'committed' || step === 'upload forgotten' ? 'whole' : 'nothing';
  expect(await whatIsThere(next, id, hashOf(bytes))).toBe(expected);
  await next.sweep();
  expect(await whatIsThere(next, id, hashOf(bytes))).toBe(expected);
  const filesBefore = await objectFiles();
  const swept = await sweptLater(next);
  expect(await whatIsThere(next, id, hashOf(bytes))).toBe(expected);
  const files = await objectFiles();
  expect(files.some((name) => name.startsWith(hashOf(bytes)))).toBe(expected === 'whole');
  expect(filesBefore.length - files.length).toBe(expected === 'whole' ? 0 : 1);
  expect(swept).toMatchObject({ objects: expected === 'whole' ? 0 : 1, texts: step === 'texts stored' ? 1 : 0 });
  expect(await sweptLater(next)).toEqual({ objects: 0, texts: 0, uploads: 0 });

  expect(await publish(next, service, { id, readme: '# Read me' })).toMatchObject({ created: expected === 'nothing' });
  await sweptLater(next);
  expect(await whatIsThere(next, id, hashOf(bytes))).toBe('whole');
});

it('a version lives on where a publication of the same bytes is swept', async () => {
  const registry = world.registry();
  await publish(registry, service, { id: 'build/twice', readme: '# Read me' });
  const bytes = await packageOf({ id: 'build/twice', readme: '# Read me' });
  await upload(registry, service, bytes);
  expect(await sweptLater(registry)).toMatchObject({ objects: 1 });
  expect(await whatIsThere(registry, 'build/twice', hashOf(bytes))).toBe('whole');
});

it('what is young is not swept', async () => {
  const registry = world.registry();
  const bytes = await packageOf({ id: 'build/young', readme: '# Read me' });
  const packageHash = await upload(registry, service, bytes);
  expect(await registry.sweep()).toEqual({ objects: 0, texts: 0, uploads: 0 });
  expect(await registry.publish({ caller: service, packageHash })).toMatchObject({ created: true });
});

/** A real process, ended by SIGKILL: while the bytes come, before the upload is known, and on both sides of the commit. */
it.each(['receiving', 'stored', 'texts stored', 'committed'])("a process killed at '%s'", async (step) => {
  const id = `test/killed-at-${step.replaceAll(' ', '-')}`;
  const bytes = await packageOf({ id, readme: '# Read me' });
  const child = spawn(process.execPath, [join(import.meta.dirname, 'fixtures', 'publisher.ts'), world.folder, step], {
    stdio: ['pipe', 'inherit', 'inherit'],
  });
  child.stdin.end(bytes);
  const [, signal] = (await once(child, 'exit')) as [number | null, string | null];
  expect(signal).toBe('SIGKILL');
  const next = world.registry();
  await next.load();
  const expected = step === 'committed' || step === 'upload forgotten' ? 'whole' : 'nothing';
  expect(await whatIsThere(next, id, hashOf(bytes))).toBe(expected);
  await sweptLater(next);
  // By the storage's own clock the bytes of a killed upload are young still: the suite of the port has them removed.
  expect((await objectFiles()).filter((name) => name.startsWith(hashOf(bytes)))).toHaveLength(
    expected === 'whole' ? 1 : 0,
  );
  expect(await whatIsThere(next, id, hashOf(bytes))).toBe(expected);
});
