/** Over a real sshd, where there is one: `SERVICE_TEST_SSHD`, or that of the machine. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { MirrorCache, MirrorCacheOptions } from '../src/mirrors.ts';
import { mirrorsIn, Repository, temporaryFolder } from './repositories.ts';

const SSHD = [process.env['SERVICE_TEST_SSHD'] ?? '', '/usr/sbin/sshd', '/usr/local/sbin/sshd'].find(
  (path) => path !== '' && existsSync(path),
);

/** Root's sshd wants a folder that its service makes at the start of the machine: where none was started it gets one of its own. */
const RUN_FOLDER =
  process.getuid?.() === 0 && !existsSync('/run/sshd')
    ? ['unshare', '--mount', 'sh', '-c', 'mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd && exec "$0" "$@"']
    : [];

const notRunFile = process.env['PENSTOCK_NOT_RUN_FILE'];
if (SSHD === undefined && notRunFile !== undefined) appendFileSync(notRunFile, 'fetching over ssh: there is no sshd\n');

describe.runIf(SSHD !== undefined)('over ssh (only where there is an sshd)', () => {
  let folder: string;
  let sshd: ChildProcess;
  let port: number;
  let repository: Repository;
  let commit: string;
  let count = 0;
  const user = userInfo().username;

  beforeAll(async () => {
    folder = temporaryFolder();
    repository = new Repository(join(folder, 'repository'));
    commit = repository.commit({ '.pipeline.yaml': 'over ssh' });
    repository.commit({ '.pipeline.yaml': 'later' });
    for (const key of ['host', 'user', 'stranger'])
      execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(folder, key)]);
    writeFileSync(join(folder, 'authorized'), readFileSync(join(folder, 'user.pub')), { mode: 0o600 });
    port = await freePort();
    writeFileSync(
      join(folder, 'sshd_config'),
      [
        `Port ${port}`,
        'ListenAddress 127.0.0.1',
        `HostKey ${folder}/host`,
        `AuthorizedKeysFile ${folder}/authorized`,
        `PidFile ${folder}/pid`,
        'StrictModes no',
        'UsePAM no',
        'PasswordAuthentication no',
        'PermitRootLogin yes',
        '',
      ].join('\n'),
    );
    const [program = '', ...args] = [...RUN_FOLDER, SSHD ?? '', '-D', '-e', '-f', join(folder, 'sshd_config')];
    sshd = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    await new Promise<void>((resolve, reject) => {
      let said = '';
      sshd.stderr?.on('data', (bytes: Buffer) => {
        said += bytes.toString();
        if (said.includes('Server listening')) resolve();
      });
      sshd.once('exit', () => reject(new Error(said)));
    });
    const host = readFileSync(join(folder, 'host.pub'), 'utf8').split(' ').slice(0, 2).join(' ');
    writeFileSync(join(folder, 'known'), `git.example ${host}\n127.0.0.1 ${host}\n[127.0.0.1]:${port} ${host}\n`);
  });
  afterAll(async () => {
    if (sshd.exitCode === null) {
      sshd.kill();
      await once(sshd, 'exit');
    }
    rmSync(folder, { recursive: true, force: true });
  });

  async function withMirrors<T>(
    more: Partial<MirrorCacheOptions>,
    key: string,
    work: (opened: MirrorCache) => Promise<T>,
  ): Promise<T> {
    count += 1;
    const opened = mirrorsIn(join(folder, `mirrors-${count}`), {
      sshSettings: [
        `IdentityFile=${join(folder, key)}`,
        'IdentitiesOnly=yes',
        `UserKnownHostsFile=${join(folder, 'known')}`,
        'StrictHostKeyChecking=yes',
      ],
      ...more,
    });
    try {
      return await work(opened);
    } finally {
      await opened.close();
    }
  }

  it('a commit is fetched from a name that only the pin knows, with the key that the name is known by', async () => {
    const url = `ssh://${user}@git.example:${port}${repository.folder}`;
    await withMirrors({ lookup: () => Promise.resolve(['127.0.0.1']) }, 'user', async (opened) => {
      const fetched = await opened.fetch({ url, commit });
      expect(await fetched.readFile(['.pipeline.yaml'], 100)).toEqual({ path: '.pipeline.yaml', text: 'over ssh' });
      await fetched.checkout(join(folder, 'workspace'));
      expect(readFileSync(join(folder, 'workspace', '.pipeline.yaml'), 'utf8')).toBe('over ssh');
    });
  });

  it('a key that the host does not know is denied, and so is a host whose key is another', async () => {
    const url = `ssh://${user}@git.example:${port}${repository.folder}`;
    await withMirrors({ lookup: () => Promise.resolve(['127.0.0.1']) }, 'stranger', (opened) =>
      expect(opened.fetch({ url, commit })).rejects.toMatchObject({ code: 'denied' }),
    );
    await withMirrors({ lookup: () => Promise.resolve(['127.0.0.1']) }, 'user', (opened) =>
      expect(opened.fetch({ url: url.replace('git.example', 'other.example'), commit })).rejects.toMatchObject({
        code: 'denied',
        message: expect.stringContaining('key of the server'),
      }),
    );
  });

  it('a repository that is not there is not found', async () => {
    const url = `ssh://${user}@127.0.0.1:${port}${folder}/no-repository`;
    await withMirrors({}, 'user', (opened) =>
      expect(opened.fetch({ url, commit })).rejects.toMatchObject({ code: 'not_found' }),
    );
  });
});

async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
