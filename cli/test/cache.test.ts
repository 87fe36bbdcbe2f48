import { describe, expect, it } from 'vitest';
import { folder, penstock } from './command.ts';
import { answering } from './fake-server.ts';

const ENTRY = {
  id: 'a1',
  repository: null,
  pipeline: 'release',
  ref: null,
  key: 'npm-\u001b[31m1',
  sizeBytes: '1234',
  createdAt: '2026-01-01T00:00:00.000Z',
  lastUsedAt: '2026-01-02T00:00:00.000Z',
};

describe('penstock cache', () => {
  it('lists what there is; a key of a stranger does nothing to the terminal', async () => {
    const { requests, env } = await answering({ caches: [ENTRY] });
    const { code, stdout } = await penstock(['cache', 'ls', '--repository', 'host/shop'], { cwd: folder(), env });
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^KEY +BYTES +OF +REF +LAST USED +ID\nnpm-.*1 +1234 +release +- +2026-01-02 00:00:00Z +a1\n$/,
    );
    expect(stdout).not.toContain('\u001b');
    expect(requests[0]?.variables).toEqual({ repository: 'host/shop' });
    expect(JSON.parse((await penstock(['cache', 'ls', '--json'], { cwd: folder(), env })).stdout)).toEqual([ENTRY]);
    const none = await answering({ caches: [] });
    expect((await penstock(['cache', 'ls'], { cwd: folder(), env: none.env })).stderr).toContain('there are no caches');
  });

  it('removes one, and says so where there was none', async () => {
    const there = await answering({ deleteCache: true });
    expect(await penstock(['cache', 'rm', 'a1'], { cwd: folder(), env: there.env })).toMatchObject({ code: 0 });
    expect(there.requests[0]?.variables).toEqual({ id: 'a1' });
    const gone = await answering({ deleteCache: false });
    expect(await penstock(['cache', 'rm', 'a1'], { cwd: folder(), env: gone.env })).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('penstock cache ls') as unknown,
    });
  });

  it.each([
    [['cache', 'lst'], "did you mean 'cache ls'?"],
    [['cache', 'rm'], 'needs the id'],
    [['cache', 'ls', 'a1'], 'takes no argument'],
  ])('%j is wrong usage', async (args, message) => {
    expect(await penstock(args, { cwd: folder() })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(message) as unknown,
    });
  });
});
