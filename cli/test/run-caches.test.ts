/** Caches of `penstock run`: kept in the user's cache folder, laid out for later runs, never over what is the user's own. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { eventsOf, folder, linesOf, penstock, pipeline } from './command.ts';

const LONG = { timeout: 120_000 };

/** The lines of the one stage. */
async function run(cwd: string, stages: string, caches = join(cwd, '.cache')): Promise<readonly string[]> {
  writeFileSync(join(cwd, '.pipeline.yaml'), pipeline(stages)['.pipeline.yaml'] ?? '');
  const { code, stdout, stderr } = await penstock(['run', '--json'], { cwd, env: { XDG_CACHE_HOME: caches } });
  expect([code, stderr], stdout).toEqual([0, '']);
  return linesOf(eventsOf(stdout), 'a').map(String);
}

function entries(cwd: string): string[] {
  const root = join(cwd, '.cache', 'penstock', 'caches');
  return readdirSync(root, { recursive: true })
    .map(String)
    .filter((path) => path.endsWith('/archive'))
    .map((path) => join(root, path));
}

describe('caches of penstock run', LONG, () => {
  it('are found by the next run under the hash of a file, and give way to what stands in the folder', async () => {
    const cwd = folder({ lock: 'one' });
    const stage = `  a:
    cache: {key: "npm-\${{ hash('lock') }}", paths: [modules, ~/.tool], restore: npm-}
    run: cat modules/x 2>/dev/null || echo nothing; mkdir -p modules; test -e modules/x || echo made > modules/x; ls -d ~/.tool || true`;
    expect(await run(cwd, stage)).toEqual(
      expect.arrayContaining(['nothing', expect.stringMatching(/^saved the cache 'npm-[0-9a-f]{64}': 1 file /)]),
    );
    rmSync(join(cwd, 'modules'), { recursive: true });
    expect(await run(cwd, stage)).toEqual(
      expect.arrayContaining([expect.stringMatching(/^restored the cache 'npm-[0-9a-f]{64}': 1 file /), 'made']),
    );
    writeFileSync(join(cwd, 'modules/x'), 'mine');
    expect(await run(cwd, stage)).toContain('mine');
    // Another key: the newest that begins alike, and its own is saved.
    writeFileSync(join(cwd, 'lock'), 'two');
    rmSync(join(cwd, 'modules'), { recursive: true });
    const near = await run(cwd, stage);
    expect(near).toEqual(expect.arrayContaining(['made', expect.stringMatching(/^saved the cache 'npm-/)]));
    expect(entries(cwd)).toHaveLength(2);
  });

  it('are left out where no folder can be made for them, and the run ends as ever', async () => {
    const lines = await run(
      folder(),
      '  a: {cache: {key: k, paths: [d]}, run: "mkdir -p d; echo made > d/x"}',
      '/proc/nowhere',
    );
    expect(lines).toContain(
      "the cache 'k' is not saved: /proc/nowhere/penstock/caches cannot be written (it is not there): let XDG_CACHE_HOME name a folder that can be",
    );
  });

  it('are laid out in a copy of the files; those of a failed stage are not saved', async () => {
    const cwd = folder({ kept: 'x', '.gitignore': '.cache\n' });
    execFileSync('git', ['init', '-q'], { cwd });
    execFileSync('git', ['add', 'kept'], { cwd });
    const stage = (end: string): string =>
      `  a: {workspace: fresh, cache: {key: k, paths: [c, kept]}, allow_failure: true, run: 'cat kept c/x || true; mkdir -p c; echo made | tee c/x kept; ${end}'}`;
    expect((await run(cwd, stage('exit 3'))).some((line) => line.startsWith('saved'))).toBe(false);
    expect(await run(cwd, stage('true'))).toContainEqual(expect.stringMatching(/^saved the cache 'k': 2 files/));
    expect((await run(cwd, stage('true'))).filter((line) => line === 'made')).toHaveLength(3);
    expect([readFileSync(join(cwd, 'kept'), 'utf8'), existsSync(join(cwd, 'c'))]).toEqual(['x', false]);
  });

  it('that are damaged are none, and are made anew; those of another folder are not found', async () => {
    const cwd = folder({});
    const stage = '  a: {cache: {key: k, paths: c}, run: "cat c/x || echo nothing; mkdir -p c; echo made > c/x"}';
    await run(cwd, stage);
    const [archive = ''] = entries(cwd);
    const bytes = readFileSync(archive);
    writeFileSync(archive, bytes.with(bytes.length - 1, (bytes.at(-1) ?? 0) ^ 1));
    rmSync(join(cwd, 'c'), { recursive: true });
    expect(await run(cwd, stage)).toEqual(
      expect.arrayContaining([
        "the cache 'k' is damaged; the stage goes on without it",
        'nothing',
        expect.stringMatching(/^saved the cache 'k'/),
      ]),
    );
    const other = folder({});
    expect(await run(other, stage, join(cwd, '.cache'))).toContain('nothing');
  });

  it('that nobody has used for long go when another is saved, and what was left half-made', async () => {
    const cwd = folder({});
    const stage = (key: string): string =>
      `  a: {cache: {key: ${key}, paths: c}, run: "mkdir -p c; echo ${key} > c/x"}`;
    await run(cwd, stage('old'));
    const [archive = ''] = entries(cwd);
    const longAgo = new Date(Date.now() - 31 * 24 * 3_600_000);
    utimesSync(join(archive, '../about'), longAgo, longAgo);
    const half = join(cwd, '.cache/penstock/caches/.new-half');
    mkdirSync(half);
    utimesSync(half, longAgo, longAgo);
    await run(cwd, stage('new'));
    expect(entries(cwd)).toHaveLength(1);
    expect([existsSync(archive), existsSync(half)]).toEqual([false, false]);
  });

  it('that cannot be kept, or are only of the home, are a line of the log, and no failure', async () => {
    const cwd = folder({ file: '' });
    const stage = '  a: {cache: {key: k, paths: c}, run: "mkdir -p c; echo made > c/x"}';
    expect(await run(cwd, stage, join(cwd, 'file'))).toContainEqual(
      expect.stringMatching(/^the cache 'k' is not saved: /),
    );
    const own = await run(cwd, "  a: {cache: {key: k, paths: ['~/.npm']}, run: 'true'}");
    expect(own).toEqual(['a cache of ~/.npm is left out: your own home stays as it is']);
  });

  it('are kept anew where a power cut has left half an entry', async () => {
    const cwd = folder({});
    const again = async (): Promise<readonly string[]> => {
      rmSync(join(cwd, 'c'), { recursive: true, force: true });
      return await run(cwd, "  a: {cache: {key: k, paths: [c]}, run: 'cat c/x || true; mkdir -p c; echo made > c/x'}");
    };
    await again();
    const [archive = ''] = entries(cwd);
    writeFileSync(join(archive, '..', 'about'), '');
    expect(await again()).toContainEqual(expect.stringMatching(/^saved the cache 'k'/));
    expect(await again()).toContain('made');
  });
});
