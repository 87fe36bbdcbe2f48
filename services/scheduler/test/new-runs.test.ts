/** What a create may bring along: an end, a lock of extensions, an origin; and when the store is asked about its id. */
import { describe, expect, it } from 'vitest';
import type { ResolvedExtension } from '@penstock/pipeline';
import {
  Definitions,
  BadPipeline,
  definedRun,
  encodeCommit,
  decodeCommit,
  COMMIT_FORMAT,
} from '@penstock/scheduler/testing';
import type { RunCreated } from '@penstock/run';
import { encodeEvent } from '../src/run/commit.ts';
import { Harness, HOUR_MS, NOW, stage, text } from './support.ts';

const one = text([stage('a')]);
const build: ResolvedExtension = {
  uses: 'build/node@^2',
  id: 'build/node',
  version: '2.1.0',
  hash: 'a'.repeat(64),
  manifest: 'id: build/node\nversion: 2.1.0\ndescription: builds\nrun: npm ci\n',
};
const lock = { uses: 'build/node@^2', id: 'build/node', version: '2.1.0', hash: 'a'.repeat(64) };

describe('a run that ends as it begins', () => {
  it.each([
    ['SKIPPED', undefined],
    ['FAILED', 'checkout'],
    ['FAILED', 'pipeline_file'],
    ['FAILED', 'quota'],
  ] as const)('%s (%s): is one commit, without stages', (status, reason) => {
    const world = new Harness();
    const { replies } = world.create('', { ended: { pipelineName: 'org/repository', status, reason } });
    expect(world.acknowledge().runs.map(({ events }) => events.map(({ type }) => type))).toEqual([
      ['run_created', 'run_completed'],
    ]);
    expect(replies).toMatchObject([
      {
        ok: true,
        run: {
          pipelineName: 'org/repository',
          status,
          reason: reason ?? null,
          stages: [],
          finishedAt: expect.any(String),
        },
      },
    ]);
    world.project();
    expect(world.load.liveRuns).toBe(0);
  });

  it('waits for no group and no concurrency slot, and takes none', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 2 });
    const limits = { pipelineRunLimit: 9, maxConcurrent: 1 };
    world.create(one, { limits });
    world.create('', { limits, ended: { pipelineName: 'p', status: 'SKIPPED' } });
    world.settle();
    expect(world.events()).not.toContain('run_held');
    world.create(one, { limits });
    world.settle();
    world.result(world.job(0));
    world.settle();
    expect(world.jobs).toHaveLength(2);
  });

  it('is restored by a build that has never seen it, though it has no text', () => {
    const world = new Harness();
    world.create('', { ended: { pipelineName: 'org/repository', status: 'FAILED', reason: 'checkout' } });
    const [entry] = world.acknowledge().runs;
    const [created] = entry?.events ?? [];
    expect(created?.type === 'run_created' && definedRun(created, new Definitions()).definition).toEqual({
      name: 'org/repository',
      schedule: [],
      stages: [],
    });
  });

  it('an empty text without an end is no pipeline', () => {
    expect(new Harness().create('').replies).toMatchObject([{ ok: false, code: 'BAD_USER_INPUT' }]);
  });

  it('inputs are checked by the owner too, and stand in run_created with their defaults', () => {
    const input = { type: 'string', description: '', options: [] } as const;
    const file = text([stage('a')], {
      inputs: [
        { ...input, name: 'version', variable: 'INPUT_VERSION', required: true },
        { ...input, name: 'count', variable: 'INPUT_COUNT', required: false, default: '3' },
      ],
    });
    for (const inputs of [undefined, [['verzion', '1']] as const])
      expect(new Harness().create(file, { inputs }).replies).toMatchObject([{ ok: false, code: 'BAD_USER_INPUT' }]);
    const world = new Harness();
    world.create(file, { inputs: [['version', '1']] });
    const [created] = world.acknowledge().runs[0]?.events ?? [];
    expect(created).toMatchObject({ type: 'run_created', inputs: { version: '1', count: '3' } });
  });

  it('runs of one text, lock and inputs have one fingerprint, which changes with each of them', () => {
    const input = { type: 'string', description: '', options: [], required: false } as const;
    const file = (name: string): string =>
      text([stage(name)], { inputs: [{ ...input, name: 'version', variable: 'INPUT_VERSION' }] });
    const fingerprint = (yaml: string, version: string): string | undefined => {
      const world = new Harness();
      world.create(yaml, { inputs: [['version', version]] });
      const [created] = world.acknowledge().runs[0]?.events ?? [];
      return created?.type === 'run_created' ? created.fingerprint : undefined;
    };
    const first = fingerprint(file('a'), '1');
    expect(first).toMatch(/^[\w-]{22}$/);
    expect(fingerprint(file('a'), '1')).toBe(first);
    expect(new Set([first, fingerprint(file('a'), '2'), fingerprint(file('b'), '1')]).size).toBe(3);
  });
});

describe('a run with extensions', () => {
  it('keeps the lock: in its event with the manifests, in its view without', () => {
    const world = new Harness();
    const { replies } = world.create(one, { extensions: [build] });
    const [created] = world.acknowledge().runs[0]?.events ?? [];
    expect(created).toMatchObject({ type: 'run_created', extensions: [build] });
    expect(replies).toMatchObject([{ ok: true, run: { extensions: [lock] } }]);
  });

  it("a stage's extension goes with its job", () => {
    const world = new Harness();
    world.session('r1-s', { credits: 1 });
    const { uses: _uses, ...extension } = lock;
    world.create(text([stage('a', { extension })]), { extensions: [build] });
    world.settle();
    expect(world.job(0).extension).toEqual(extension);
  });

  it('manifests are deflated in the journal, whatever the length of the text', () => {
    const manifest = `${build.manifest}${'# a line like any other\n'.repeat(5_000)}`;
    for (const yaml of [one, `${one}${' '.repeat(4_000)}`]) {
      const event: RunCreated = {
        type: 'run_created',
        at: NOW,
        tenant: 't',
        key: 'k',
        pipelineName: 'p',
        yaml,
        extensions: [{ ...build, manifest }],
        priority: 0,
        origin: { kind: 'api' },
      };
      const encoded = encodeEvent(event);
      expect(encoded.length).toBeLessThan(manifest.length / 20);
      const head = {
        id: 'c',
        kind: 'runs',
        partition: 0,
        epoch: 1,
        number: 1,
        owner: 'me',
        minReader: COMMIT_FORMAT,
        at: NOW,
      } as const;
      expect(decodeCommit(encodeCommit(head, [{ id: 'r', from: 1, events: [encoded] }])).runs[0]?.events).toEqual([
        event,
      ]);
    }
  });

  it('that no message could tell to its watchers is refused', () => {
    const extensions = [{ ...build, manifest: '#'.repeat(900 * 1024) }];
    expect(new Harness().create(one, { extensions }).replies).toMatchObject([{ ok: false, code: 'BAD_USER_INPUT' }]);
  });
});

describe('definitions', () => {
  const plain = 'pipeline: {name: p}\nstages: {a: {run: "true"}}\n';

  it('runs of one text share it, and one with a lock is another', () => {
    const definitions = new Definitions();
    const found = definitions.find(plain);
    expect(definitions.find(` ${plain}`.trimStart())).toBe(found);
    const locked = definitions.find(plain, [build]);
    expect(locked.extensions).toEqual([build]);
    expect(definitions.find(plain, [{ ...build }])).toBe(locked);
    expect(definitions.find(plain).extensions).toBeUndefined();
  });

  it('what is no pipeline is refused each time', () => {
    const definitions = new Definitions();
    for (let index = 0; index < 2; index++) expect(() => definitions.find('stages: [')).toThrow(BadPipeline);
  });
});

describe('where a run comes from', () => {
  const origin = {
    kind: 'webhook',
    repository: 'org/repository',
    ref: 'refs/heads/$(touch x)',
    commit: 'c0ffee',
    provider: 'git_host_a',
    source: '.pipeline.yaml',
    cloneUrl: 'https://user:secret@host/org/repository.git',
  } as const;

  it('is told to its stages as data, and to the runner with the address to fetch from', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 1 });
    world.create(one, { origin });
    world.settle();
    expect(world.job(0)).toMatchObject({
      origin,
      env: {
        SERVICE_REPOSITORY: 'org/repository',
        SERVICE_REF: 'refs/heads/$(touch x)',
        SERVICE_COMMIT: 'c0ffee',
        SERVICE_PROVIDER: 'git_host_a',
      },
    });
  });

  it('is shown in the view, without the address', () => {
    const world = new Harness();
    const { replies } = world.create(one, { origin });
    world.settle();
    expect(replies).toMatchObject([
      {
        ok: true,
        run: { source: '.pipeline.yaml', repository: 'org/repository', ref: 'refs/heads/$(touch x)', commit: 'c0ffee' },
      },
    ]);
    expect(JSON.stringify(replies)).not.toContain('secret');
  });
});

describe('a partition that nobody has owned before', () => {
  it('P7: asks the store about no id that is young enough: nobody can have closed its run', () => {
    const world = new Harness({ neverOwned: true });
    world.create(one);
    world.create(one, { id: world.id({ ageMs: HOUR_MS - 1_000 }) });
    expect(world.askedStore).toEqual([]);
    world.create(one, { id: world.id({ ageMs: HOUR_MS + 1_000 }) });
    expect(world.askedStore).toHaveLength(1);
  });

  it('P7: remembers the runs that it has closed itself', () => {
    const world = new Harness({ neverOwned: true });
    const { id } = world.create(text([]));
    world.settle();
    world.project();
    world.stored = true;
    expect(world.create(text([]), { id }).replies).toMatchObject([{ ok: true, created: false, run: null }]);
  });
});
