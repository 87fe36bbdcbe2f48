/** Caches of stages, on a server as a user has it: left by a success, found by later runs, listed, deleted. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunningServer } from '../support/server.ts';
import { startSmallServer, type SmallServer } from '../support/small-server.ts';

interface Listed {
  readonly id: string;
  readonly key: string;
  readonly pipeline: string | null;
  readonly sizeBytes: string;
}

let small: SmallServer;
let server: RunningServer;

beforeAll(async () => {
  small = await startSmallServer();
  ({ server } = small);
}, 90_000);
afterAll(() => small.stop());

async function list(pipeline: string): Promise<readonly Listed[]> {
  const { data } = await server.graphql<{ caches: readonly Listed[] }>('{ caches { id key pipeline sizeBytes } }', {});
  return data.caches.filter((cache) => cache.pipeline === pipeline);
}

/** Entries follow the commit of the success, as documents do. */
async function listed(pipeline: string, count: number): Promise<readonly Listed[]> {
  return await expect
    .poll(() => list(pipeline), { timeout: 30_000 })
    .toHaveLength(count)
    .then(() => list(pipeline));
}

describe('caches', { timeout: 120_000 }, () => {
  it('what a success has left is there for the next run of the same key, links, modes and times included', async () => {
    const yaml = `pipeline: {name: found}
stages:
  build:
    cache: {key: "npm-\${{ hash('lock') }}", paths: [modules, ~/.tool]}
    run:
      - mkdir -p modules/.bin ~/.tool && test ! -e modules/one && echo nothing found || echo "found $(cat modules/.bin/one) $(cat ~/.tool/x)"
      - echo made > modules/one; chmod 755 modules/one; touch -d @1000000000 modules/one; ln -sfn ../one modules/.bin/one; echo home > ~/.tool/x
      - stat -c '%a %Y %U' modules/one
`;
    const first = await small.run(yaml);
    expect(first.status).toBe('SUCCESS');
    expect(await small.linesOf(first.id)).toEqual(
      expect.arrayContaining(['nothing found', expect.stringMatching(/^saved the cache 'npm-[0-9a-f]{64}': 3 files/)]),
    );
    const [entry] = await listed('found', 1);
    expect(entry?.key).toMatch(/^npm-[0-9a-f]{64}$/);
    const second = await small.run(yaml);
    const lines = await small.linesOf(second.id);
    expect(lines).toEqual(
      expect.arrayContaining(['found made home', expect.stringMatching(/^restored the cache 'npm-/)]),
    );
    expect(lines.some((line) => line.startsWith('saved'))).toBe(false);
  });

  it('parallel stages save one key once; what a failed stage has made is not saved', async () => {
    const stage = (name: string, end: string): string => `  ${name}:
    workspace: fresh
    cache: {key: both, paths: [c]}
    run: mkdir -p c && echo ${name} > c/x && ${end}
`;
    const failed = await small.run(`pipeline: {name: parallel}\nstages:\n${stage('bad', 'exit 3')}`);
    expect(failed.status).toBe('FAILED');
    const both = await small.run(`pipeline: {name: parallel}\nstages:\n${stage('one', 'true')}${stage('two', 'true')}`);
    expect(both.status).toBe('SUCCESS');
    const lines = await small.linesOf(both.id);
    expect(lines.filter((line) => line.startsWith("saved the cache 'both'"))).toHaveLength(1);
    expect(await listed('parallel', 1)).toMatchObject([{ key: 'both' }]);
  });

  it('another key is found by its beginning, and one that is removed by nobody', async () => {
    const yaml = (key: string): string => `pipeline: {name: near}
stages:
  a:
    cache: {key: ${key}, paths: c, restore: [lib-]}
    run: cat c/x 2>/dev/null || echo nothing; mkdir -p c; echo ${key} > c/x
`;
    await small.run(yaml('lib-1'));
    await listed('near', 1);
    const near = await small.run(yaml('lib-2'));
    expect(await small.linesOf(near.id)).toContain('lib-1');
    const caches = await listed('near', 2);
    for (const { id } of caches) {
      const { data } = await server.graphql<{ deleteCache: boolean }>(
        'mutation ($id: String) { deleteCache(id: $id) }',
        { id },
      );
      expect(data.deleteCache).toBe(true);
    }
    expect(await small.linesOf((await small.run(yaml('lib-3'))).id)).toContain('nothing');
  });

  it('what is larger than may be kept is a line of the log, and no failure', async () => {
    const { id, status } = await small.run(`pipeline: {name: large}
stages:
  a:
    cache: {key: k, paths: c}
    run: mkdir c && head -c 4000000 /dev/urandom > c/x
`);
    expect(status).toBe('SUCCESS');
    expect(await small.linesOf(id)).toContainEqual(
      expect.stringMatching(/^the cache 'k' is not saved: All caches together/),
    );
    expect(await list('large')).toEqual([]);
  });
});
