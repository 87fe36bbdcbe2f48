/** Extensions through the API: the registry stands beside the gateway, as it does in `serve`. */
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { answerCalls } from '@penstock/service';
import { BadUserInput } from '@penstock/errors';
import type { BusSubscription } from '@penstock/bus';
import type { ResolveRequest, Unresolved } from '@penstock/extension';
import { graphql, makeWorld, type World } from './harness.ts';

let world: World;
let registry: BusSubscription | undefined;
beforeAll(async () => {
  world = await makeWorld();
});
afterEach(async () => {
  registry?.stop();
  await world.reset();
});
afterAll(() => world.close());

const HASH = 'a'.repeat(64);
const MANIFEST = 'id: build/node\nversion: 2.1.0\ndescription: Builds\nrun: npm ci\n';
const yamlOf = (...uses: string[]): string =>
  [
    'pipeline:',
    '  name: demo',
    'stages:',
    ...uses.flatMap((each, index) => [`  s${index}:`, `    uses: ${each}`]),
  ].join('\n');
const TRIGGER =
  'mutation ($yaml: String, $lock: [LockEntryInput!]) { triggerPipeline(yaml: $yaml, waitSeconds: 0, lock: $lock) { run { id stages { name } } } }';
const LOCK = [{ uses: 'build/node@^2', id: 'build/node', version: '2.1.0', hash: HASH }];

/** A registry that knows `build/node` only; what it was asked. */
function startRegistry(): ResolveRequest[] {
  const asked: ResolveRequest[] = [];
  registry = answerCalls(world.ownerBus, 'registry', {
    resolve(request: ResolveRequest) {
      asked.push(request);
      const unresolved = request.uses
        .filter((each) => !each.startsWith('build/node@'))
        .map((uses): Unresolved => ({
          uses,
          message: `There is no extension '${uses}'; did you mean 'build/node'?`,
          candidates: ['build/node'],
        }));
      if (unresolved.length > 0) throw new BadUserInput('None.', { unresolved });
      return {
        extensions: request.uses.map((uses) => ({
          uses,
          id: 'build/node',
          version: '2.1.0',
          hash: HASH,
          manifest: MANIFEST,
        })),
      };
    },
  });
  return asked;
}

it('a run is created with what its uses were resolved to', async () => {
  const asked = startRegistry();
  const app = await world.gateway();
  const { errors } = await graphql(app, TRIGGER, { variables: { yaml: yamlOf('build/node@^2'), lock: LOCK } });
  expect(errors).toEqual([]);
  expect(asked).toEqual([
    { caller: { tenant: 'service', tier: 'enterprise', isAdmin: false }, uses: ['build/node@^2'], lock: LOCK },
  ]);
  expect(world.owner.created.at(-1)).toMatchObject({
    extensions: [{ uses: 'build/node@^2', version: '2.1.0', hash: HASH, manifest: MANIFEST }],
  });
});

it('a file without extensions asks nobody', async () => {
  const app = await world.gateway();
  const { errors } = await graphql(app, TRIGGER, {
    variables: { yaml: 'pipeline: { name: uses-nothing }\nstages: { a: { run: "echo uses" } }' },
  });
  expect(errors).toEqual([]);
  expect(world.owner.created.at(-1)).not.toHaveProperty('extensions');
});

it('what cannot be resolved refuses the trigger with its place, a suggestion and all other problems of the file', async () => {
  startRegistry();
  const app = await world.gateway();
  const yaml = `${yamlOf('build/node@^2', 'build/nod@^2', "'no id'")}\n  s9:\n    rnu: x`;
  const { data, errors } = await graphql(app, TRIGGER, { variables: { yaml } });
  expect(data).toBeNull();
  expect(errors[0]?.extensions).toMatchObject({
    code: 'BAD_USER_INPUT',
    diagnostics: expect.arrayContaining([
      {
        line: 7,
        column: 11,
        length: 12,
        path: 'stages.s1.uses',
        message: "There is no extension 'build/nod@^2'",
        suggestion: "did you mean 'build/node'?",
      },
      expect.objectContaining({ line: 9, path: 'stages.s2.uses' }),
      expect.objectContaining({ line: 11 }),
    ]),
  });
  expect(JSON.stringify(errors[0]?.extensions)).not.toContain('stages.s0.uses');
});

it('the place is found however the text stands there, and several faults of one are reported there', async () => {
  registry = answerCalls(world.ownerBus, 'registry', {
    resolve({ uses }: ResolveRequest) {
      const inner = (each: string): Unresolved => ({
        uses: 'test/outer@^1',
        message: `'test/outer@1.0.0' uses '${each}': There is no extension '${each}'.`,
        candidates: [],
      });
      throw new BadUserInput('None.', {
        unresolved: uses.includes('test/outer@^1') ? [inner('test/a'), inner('test/b')] : [],
      });
    },
  });
  const app = await world.gateway();
  const yaml =
    'pipeline: {name: p}\nstages:\n  a:\n    uses: >-\n      test/outer@^1\n  b: {uses: "build/no\\x64e@^2"}\n  c:\n    uses: test/outer\n';
  const { errors } = await graphql(app, TRIGGER, { variables: { yaml } });
  expect(errors[0]?.extensions['diagnostics']).toMatchObject([
    {
      line: 4,
      column: 11,
      path: 'stages.a.uses',
      message: "'test/outer@1.0.0' uses 'test/a': There is no extension 'test/a'",
    },
    {
      line: 4,
      column: 11,
      path: 'stages.a.uses',
      message: "'test/outer@1.0.0' uses 'test/b': There is no extension 'test/b'",
    },
    expect.objectContaining({ line: 8, path: 'stages.c.uses' }),
  ]);
});

it('a locked file that was resolved before is triggered without the registry; any other is UNAVAILABLE', async () => {
  startRegistry();
  const app = await world.gateway({ ownerMsMax: 3_000 });
  expect((await graphql(app, TRIGGER, { variables: { yaml: yamlOf('build/node@^2'), lock: LOCK } })).errors).toEqual(
    [],
  );
  registry?.stop();
  await world.ownerBus.flush();
  const { errors } = await graphql(app, TRIGGER, { variables: { yaml: yamlOf('build/node@^2'), lock: LOCK } });
  expect(errors).toEqual([]);
  expect(world.owner.created.at(-1)).toMatchObject({ extensions: [{ hash: HASH }] });
  const other = await graphql(app, TRIGGER, { variables: { yaml: yamlOf('build/node@^2') } });
  expect(other.errors[0]?.extensions).toMatchObject({ code: 'UNAVAILABLE' });
});
