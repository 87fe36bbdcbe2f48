import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { queryObjects } from 'node:v8';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Mirror } from '../src/mirror.ts';
import type { MirrorCache } from '../src/mirrors.ts';
import { mirrorsIn, Repository, smartServer, temporaryFolder, type TestServer } from './repositories.ts';
import { silentLog } from '@penstock/telemetry/log';

const PIPELINE = '.pipeline.yaml';

let folder: string;
const closing: { close(): Promise<void> }[] = [];
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(async () => {
  for (const one of closing.splice(0).toReversed()) await one.close();
  rmSync(folder, { recursive: true, force: true });
});

function mirrors(more: Parameters<typeof mirrorsIn>[1] = {}): MirrorCache {
  const opened = mirrorsIn(join(folder, 'mirrors'), more);
  closing.push(opened);
  return opened;
}

function kept(): string[] {
  return readdirSync(join(folder, 'mirrors')).filter((name) => name.endsWith('.git'));
}

function forPacks(mirror: string, damage: (pack: string) => void): void {
  const folderOfPacks = join(mirror, 'objects/pack');
  for (const name of readdirSync(folderOfPacks)) {
    if (!name.endsWith('.pack')) continue;
    chmodSync(join(folderOfPacks, name), 0o600);
    damage(join(folderOfPacks, name));
  }
}

/** A repository of some 300 KB that no compression makes smaller, and whose files git writes itself. */
function noisy(name: string): { readonly repository: Repository; readonly commit: string } {
  const repository = new Repository(join(folder, name));
  return {
    repository,
    commit: repository.commit({ noise: randomBytes(300 * 1024), [PIPELINE]: name, '.gitattributes': '' }),
  };
}

describe('mirrors', () => {
  it('go when there is no room, those not used for longest first, and what is read of them then is fetched again', async () => {
    const [a, b, c] = [noisy('a'), noisy('b'), noisy('c')];
    const opened = mirrors({ bytesMax: 800 * 1024, repositoryBytesMax: 700 * 1024 });
    const first = await opened.fetch({ url: a.repository.url, commit: a.commit });
    const [nameOfFirst] = kept();
    await opened.fetch({ url: b.repository.url, commit: b.commit });
    await first.message();
    await opened.fetch({ url: c.repository.url, commit: c.commit });
    expect(kept()).toHaveLength(2);
    expect(kept()).toContain(nameOfFirst);
    await opened.fetch({ url: b.repository.url, commit: b.commit });
    expect(kept()).not.toContain(nameOfFirst);
    expect((await first.readFile([PIPELINE], 100))?.text).toBe('a');
  });

  it('of repositories that cannot be had leave nothing behind', async () => {
    const opened = mirrors({ fetchMsMax: 5_000 });
    const before = queryObjects(Mirror, { format: 'count' });
    const missing = Array.from({ length: 20 }, (_, number) => pathToFileURL(join(folder, `none-${number}`)).href);
    await Promise.allSettled(missing.map((url) => opened.fetch({ url, commit: 'a'.repeat(40) })));
    // A deadline may hold on to what it is for until it is over.
    await vi.waitFor(() => expect(queryObjects(Mirror, { format: 'count' })).toBeLessThanOrEqual(before), {
      timeout: 30_000,
      interval: 1_000,
    });
  });

  it('are found again by the next process, counted, and rid of what a kill has left in them', async () => {
    const [a, b] = [noisy('a'), noisy('b')];
    await mirrors().fetch({ url: a.repository.url, commit: a.commit });
    await closing.pop()?.close();
    const mirror = join(folder, 'mirrors', kept()[0] ?? '');
    for (const left of ['shallow.lock', 'config.lock', 'objects/pack/tmp_pack_x', 'refs/penstock/whole/x.lock'])
      writeFileSync(join(mirror, left), 'left');
    mkdirSync(join(folder, 'mirrors', 'trash-x', 'objects'), { recursive: true });
    utimesSync(mirror, new Date(0), new Date(0));
    const opened = mirrors({ bytesMax: 500 * 1024, repositoryBytesMax: 500 * 1024 });
    const later = a.repository.commit({ later: '' });
    expect(await (await opened.fetch({ url: a.repository.url, commit: later })).message()).toBe('a commit\n');
    expect(readdirSync(join(mirror, 'objects/pack')).filter((name) => name.startsWith('tmp_'))).toEqual([]);
    await opened.fetch({ url: b.repository.url, commit: b.commit });
    expect(kept()).toHaveLength(1);
    expect(existsSync(join(folder, 'mirrors', 'trash-x'))).toBe(false);
  });

  it.each([
    ['an empty pack', (mirror: string) => forPacks(mirror, (pack) => truncateSync(pack, 0))],
    ['half a pack', (mirror: string) => forPacks(mirror, (pack) => truncateSync(pack, 200_000))],
    ['no pack', (mirror: string) => rmSync(join(mirror, 'objects'), { recursive: true })],
    ['no HEAD', (mirror: string) => rmSync(join(mirror, 'HEAD'))],
    ['a configuration that is none', (mirror: string) => writeFileSync(join(mirror, 'config'), '[[[')],
    ['nothing at all', (mirror: string) => rmSync(mirror, { recursive: true })],
  ])('that are damaged are made anew: %s', async (_what, damage) => {
    const { repository, commit } = noisy('a');
    const opened = mirrors();
    const fetched = await opened.fetch({ url: repository.url, commit });
    damage(join(folder, 'mirrors', kept()[0] ?? ''));
    await fetched.checkout(join(folder, 'workspace'));
    expect(execFileSync('git', ['-C', join(folder, 'workspace'), 'status', '--porcelain'], { encoding: 'utf8' })).toBe(
      '',
    );
    damage(join(folder, 'mirrors', kept()[0] ?? ''));
    const later = repository.commit({ [PIPELINE]: 'later' });
    expect((await (await opened.fetch({ url: repository.url, commit: later })).readFile([PIPELINE], 100))?.text).toBe(
      'later',
    );
    await closing.pop()?.close();
    damage(join(folder, 'mirrors', kept()[0] ?? ''));
    expect(await (await mirrors().fetch({ url: repository.url, commit: later })).message()).toBe('a commit\n');
  });

  it('of one address are another to each key, and what was fetched for one serves no other', async () => {
    const { repository, commit } = noisy('a');
    const small = repository.commit({ noise: '', '.gitattributes': { link: 'nowhere' } });
    repository.git('rm', '-q', '.gitattributes');
    repository.git('commit', '-q', '-m', 'small');
    const last = repository.git('rev-parse', 'HEAD');
    const opened = mirrors();
    const { url } = repository;
    for (const each of [commit, small, last])
      await (await opened.fetch({ url, commit: each, key: 'one' })).checkout(join(folder, each));
    rmSync(repository.folder, { recursive: true });
    for (const each of [commit, small, last]) {
      expect((await (await opened.fetch({ url, commit: each, key: 'one' })).readFile([PIPELINE], 100))?.text).toBe('a');
      for (const key of ['two', undefined])
        await expect(opened.fetch({ url, commit: each, key })).rejects.toMatchObject({ name: 'GitError' });
    }
  });

  it('mirrors outlive their host being away', async () => {
    const { commit } = noisy('a');
    const server = await smartServer(folder);
    const url = `${server.url}/a/.git`;
    const opened = mirrors();
    await opened.fetch({ url, commit });
    await server.close();
    await expect(opened.fetch({ url, commit: 'b'.repeat(40) })).rejects.toMatchObject({ code: 'unreachable' });
    expect((await (await opened.fetch({ url, commit })).readFile([PIPELINE], 100))?.text).toBe('a');
  });

  it('of many pushes hold few packs', async () => {
    const repository = new Repository(join(folder, 'a'));
    const commits = repository.commitMany(60, (index) => ({ path: PIPELINE, text: `${index}`, message: `${index}\n` }));
    const opened = mirrors();
    for (const commit of commits) await opened.fetch({ url: repository.url, commit });
    const mirror = join(folder, 'mirrors', kept()[0] ?? '');
    expect(readdirSync(join(mirror, 'objects/pack')).filter((name) => name.endsWith('.pack')).length).toBeLessThan(20);
    expect(
      (await (await opened.fetch({ url: repository.url, commit: commits[0] ?? '' })).readFile([PIPELINE], 100))?.text,
    ).toBe('0');
  });
});

describe('credentials', () => {
  const SECRET = 'canary-p@ss';
  let server: TestServer;
  let file: string;
  let commit: string;
  beforeEach(async () => {
    ({ commit } = noisy('a'));
    server = await smartServer(folder, { password: SECRET });
    closing.push(server);
    file = join(folder, 'credentials');
  });

  async function fetchWith(credentialsFile: string | undefined, lines: string[] = []): Promise<void> {
    const opened = mirrors({
      credentialsFile,
      log: {
        ...silentLog,
        debug: (...line) => lines.push(JSON.stringify(line)),
        warn: (...line) => lines.push(JSON.stringify(line)),
      },
    });
    const fetched = await opened.fetch({ url: `${server.url}/a/.git`, commit });
    await fetched.checkout(join(folder, 'workspace'));
  }

  it('come from the file, for the host that they are for, and end up nowhere', async () => {
    writeFileSync(
      file,
      `http://user:${encodeURIComponent('wrong')}@example.com\nhttp://user:${encodeURIComponent(SECRET)}@127.0.0.1:${server.port}\n`,
      { mode: 0o600 },
    );
    const before = readFileSync(file, 'utf8');
    // A git that notes how it is called, in place of git.
    const programs = join(folder, 'programs');
    mkdirSync(programs);
    const path = process.env['PATH'] ?? '';
    const real = execFileSync('sh', ['-c', 'command -v git'], { encoding: 'utf8' }).trim();
    writeFileSync(join(programs, 'git'), `#!/bin/sh\n{ echo "$*"; env; } >>${folder}/calls\nexec ${real} "$@"\n`);
    chmodSync(join(programs, 'git'), 0o755);
    const lines: string[] = [];
    process.env['PATH'] = `${programs}:${path}`;
    process.env['SERVICE_SECRET'] = 'another-canary';
    try {
      await fetchWith(file, lines);
    } finally {
      process.env['PATH'] = path;
      delete process.env['SERVICE_SECRET'];
    }
    const calls = readFileSync(join(folder, 'calls'), 'utf8');
    expect(calls).toContain('fetch');
    for (const canary of [SECRET, encodeURIComponent(SECRET), 'another-canary']) {
      expect(calls).not.toContain(canary);
      expect(lines.join('\n')).not.toContain(canary);
      expect(
        execFileSync(
          'sh',
          ['-c', `grep -rlF '${canary}' ${join(folder, 'mirrors')} ${join(folder, 'workspace')} || true`],
          { encoding: 'utf8' },
        ),
      ).toBe('');
    }
    expect(readFileSync(file, 'utf8')).toBe(before);
  });

  it('come from a helper program where the file is one', async () => {
    writeFileSync(file, `#!/bin/sh\necho username=user\necho 'password=${SECRET}'\n`, { mode: 0o700 });
    await fetchWith(file);
    expect(existsSync(join(folder, 'workspace', 'noise'))).toBe(true);
  });

  it.each([
    ['none', undefined],
    ['wrong ones', 'http://user:wrong@127.0.0.1'],
    ['those of another host', `http://user:${encodeURIComponent(SECRET)}@localhost`],
  ])('that are %s are an answer of their own, and no prompt', async (_what, line) => {
    if (line !== undefined)
      writeFileSync(file, `${line.replace('127.0.0.1', `127.0.0.1:${server.port}`)}\n`, { mode: 0o600 });
    const error = await fetchWith(line === undefined ? undefined : file).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ code: 'denied' });
    expect(JSON.stringify([String(error), String((error as Error).cause)])).not.toMatch(/wrong@|canary/);
  });
});

describe('git', () => {
  const path = process.env['PATH'] ?? '';
  afterEach(() => {
    process.env['PATH'] = path;
  });

  it.each([
    ['is missing', null, 'not installed'],
    ['is too old', '2.20.1', 'need git 2.37 or newer'],
    ['says something else', 'x', 'need git'],
  ])('that %s is named', async (_what, version, message) => {
    const programs = join(folder, 'programs');
    mkdirSync(programs);
    if (version !== null)
      writeFileSync(join(programs, 'git'), `#!/bin/sh\necho git version ${version}\n`, { mode: 0o755 });
    process.env['PATH'] = programs;
    await expect(mirrors().fetch({ url: `file://${folder}`, commit: 'a'.repeat(40) })).rejects.toMatchObject({
      code: 'git_unusable',
      message: expect.stringContaining(message),
    });
  });
});
