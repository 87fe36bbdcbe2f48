/** Commits that a fetch brings along for later. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { MirrorCache } from '../src/mirrors.ts';
import { mirrorsIn, Repository, smartServer, temporaryFolder, type TestServer } from './repositories.ts';

const PIPELINE = '.pipeline.yaml';
const TEST_MS_MAX = 60_000;
/** With the one that is asked for. */
const TOGETHER_MAX = 16;

describe('a fetch into a mirror that is there', () => {
  let folder: string;
  let server: TestServer;
  let opened: MirrorCache;
  let commits: readonly string[];
  /** Of each request to the server. */
  let before: () => Promise<void>;

  beforeEach(async () => {
    folder = temporaryFolder();
    commits = new Repository(join(folder, 'repository')).commitMany(30, (index) => ({
      path: PIPELINE,
      text: `commit ${index}`,
      message: `message ${index}\n`,
    }));
    before = () => Promise.resolve();
    server = await smartServer(folder, { before: () => before() });
    opened = mirrorsIn(join(folder, 'mirrors'));
    await fetched(0);
  }, TEST_MS_MAX);
  afterEach(async () => {
    await opened.close();
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  });

  async function fetched(index: number, along?: readonly string[]): Promise<string | undefined> {
    const url = `${server.url}/repository/.git`;
    const commit = await opened.fetch({ url, commit: commits[index] ?? '', along });
    return (await commit.readFile([PIPELINE], 100))?.text;
  }

  /** How often a pack was asked for. */
  const packs = (): number => server.requests.filter(({ line }) => line.startsWith('POST')).length;

  it(
    'brings those along that will be wanted next, and they are not asked for again',
    async () => {
      const before = packs();
      expect(await fetched(1, commits.slice(2))).toBe('commit 1');
      for (let index = 2; index <= TOGETHER_MAX; index += 1) expect(await fetched(index)).toBe(`commit ${index}`);
      expect(packs()).toBe(before + 1);
      expect(await fetched(TOGETHER_MAX + 1)).toBe(`commit ${TOGETHER_MAX + 1}`);
      expect(packs()).toBe(before + 2);
    },
    TEST_MS_MAX,
  );

  it(
    'keeps nobody waiting who wants what came along with another',
    async () => {
      expect(await fetched(1, commits.slice(2, 5))).toBe('commit 1');
      const asked = Promise.withResolvers<void>();
      const held = Promise.withResolvers<void>();
      before = () => {
        asked.resolve();
        return held.promise;
      };
      const other = fetched(20);
      await asked.promise;
      expect(await fetched(2)).toBe('commit 2');
      held.resolve();
      expect(await other).toBe('commit 20');
    },
    TEST_MS_MAX,
  );

  it(
    'is no worse off for one among them that the server does not have, and asks for none of them then for a while',
    async () => {
      expect(await fetched(1, ['f'.repeat(40), commits[2] ?? ''])).toBe('commit 1');
      const before = packs();
      expect(await fetched(3, [commits[4] ?? ''])).toBe('commit 3');
      expect(packs()).toBe(before + 1);
      expect(await fetched(4)).toBe('commit 4');
      expect(packs()).toBe(before + 2);
    },
    TEST_MS_MAX,
  );

  it(
    'is no worse off for what is no commit',
    async () => {
      const refs = ['main', '0'.repeat(40), '--upload-pack=x', 'f'.repeat(64), commits[1] ?? ''];
      const before = packs();
      expect(await fetched(1, refs)).toBe('commit 1');
      expect(packs()).toBe(before + 1);
    },
    TEST_MS_MAX,
  );
});
