/** What a repository has of its own in place of what the machine has: given to git alone, for its own host alone. */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CloneCredential } from '../src/index.ts';
import type { MirrorCache } from '../src/mirrors.ts';
import { mirrorsIn, Repository, serve, smartServer, temporaryFolder, type TestServer } from './repositories.ts';

const CANARY = 'canary/p@ss:w0rd';
const OWN: CloneCredential = { user: 'user', password: CANARY };

let folder: string;
let repository: Repository;
let commit: string;
const path = process.env['PATH'] ?? '';
const closing: { close(): Promise<void> }[] = [];
beforeEach(() => {
  folder = temporaryFolder();
  repository = new Repository(join(folder, 'a'));
  commit = repository.commit({ '.pipeline.yaml': 'private', noise: randomBytes(64 * 1024) });
});
afterEach(async () => {
  process.env['PATH'] = path;
  for (const one of closing.splice(0).toReversed()) await one.close();
  rmSync(folder, { recursive: true, force: true });
});

function mirrors(more: Parameters<typeof mirrorsIn>[1] = {}): MirrorCache {
  const opened = mirrorsIn(join(folder, 'mirrors'), more);
  closing.push(opened);
  return opened;
}

async function privateServer(): Promise<TestServer> {
  const server = await smartServer(folder, { password: CANARY });
  closing.push(server);
  return server;
}

/** In place of the program of this name: notes how it is called, and then is it. */
function watch(program: string, instead = `exec "$(PATH=${path} command -v ${program})" "$@"`): void {
  const programs = join(folder, 'programs');
  mkdirSync(programs, { recursive: true });
  writeFileSync(join(programs, program), `#!/bin/sh\n{ echo "$*"; env; } >>${folder}/calls\n${instead}\n`);
  chmodSync(join(programs, program), 0o755);
  process.env['PATH'] = `${programs}:${path}`;
}

const calls = (): string => readFileSync(join(folder, 'calls'), 'utf8');

function filesWith(text: string, ...folders: readonly string[]): string {
  return execFileSync('sh', ['-c', 'grep -rlF -e "$0" "$@" || true', text, ...folders], { encoding: 'utf8' });
}

/** Files that a process of this test could have left. */
const leftBehind = (): string[] =>
  ['/dev/shm', tmpdir()].flatMap((each) =>
    existsSync(each) ? readdirSync(each).filter((name) => /^\.penstock-(git|agent)-/u.test(name)) : [],
  );

describe('a password of its own', () => {
  it('opens the repository, and stands in no argument, environment, mirror, workspace or file', async () => {
    const server = await privateServer();
    watch('git');
    const url = `${server.url}/a/.git`;
    const opened = mirrors();
    expect(await opened.findRef({ url, ref: 'refs/heads/main', credential: OWN })).toBe(commit);
    const fetched = await opened.fetch({ url, commit, credential: OWN });
    expect((await fetched.readFile(['.pipeline.yaml'], 100))?.text).toBe('private');
    await fetched.checkout(join(folder, 'workspace'));
    expect(calls()).toContain('fetch');
    for (const canary of [CANARY, encodeURIComponent(CANARY), Buffer.from(`user:${CANARY}`).toString('base64')]) {
      expect(calls()).not.toContain(canary);
      expect(filesWith(canary, join(folder, 'mirrors'), join(folder, 'workspace'))).toBe('');
    }
    expect(leftBehind()).toEqual([]);
  });

  it('that is wrong is denied, and nothing of the machine is tried in its place', async () => {
    const server = await privateServer();
    const file = join(folder, 'credentials');
    writeFileSync(file, `http://user:${encodeURIComponent(CANARY)}@127.0.0.1:${server.port}\n`, { mode: 0o600 });
    const opened = mirrors({ credentialsFile: file });
    const url = `${server.url}/a/.git`;
    const wrong = { user: 'user', password: 'a wrong one' };
    for (const asked of [
      () => opened.fetch({ url, commit, credential: wrong }),
      () => opened.findRef({ url, ref: 'refs/heads/main', credential: wrong }),
    ]) {
      const error = await asked().then(
        () => null,
        (caught: unknown) => caught as Error,
      );
      expect(error).toMatchObject({ code: 'denied' });
      expect(`${String(error)} ${String(error?.cause)}`).not.toMatch(/a wrong one|a%20wrong|canary/u);
    }
    const sent = server.requests.flatMap(({ authorization }) => authorization ?? []);
    expect(new Set(sent)).toEqual(new Set([`Basic ${Buffer.from('user:a wrong one').toString('base64')}`]));
  });

  it('is not sent where the server sends git to', async () => {
    const other = await privateServer();
    const server = await serve((request, response) => {
      if (request.headers.authorization === undefined)
        response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end();
      else response.writeHead(302, { location: `${other.url}${request.url}` }).end();
    });
    closing.push(server);
    await expect(mirrors().fetch({ url: `${server.url}/a/.git`, commit, credential: OWN })).rejects.toMatchObject({
      code: 'unreachable',
      message: expect.stringContaining('another address'),
    });
    expect(server.requests.some(({ authorization }) => authorization !== undefined)).toBe(true);
    expect(other.requests).toEqual([]);
  });

  it('serves nobody else: neither another key nor the same one without it is given what it has brought', async () => {
    const server = await privateServer();
    const url = `${server.url}/a/.git`;
    const opened = mirrors();
    await opened.fetch({ url, commit, key: 'user/1', credential: OWN });
    const asked = server.requests.length;
    await (await opened.fetch({ url, commit, key: 'user/1', credential: OWN })).checkout(join(folder, 'workspace'));
    expect(server.requests).toHaveLength(asked);
    for (const other of [{ key: 'user/2' }, { key: 'user/1' }, {}])
      await expect(opened.fetch({ url, commit, ...other })).rejects.toMatchObject({ code: 'denied' });
    const wrong = { user: 'user', password: 'a wrong one' };
    await expect(opened.fetch({ url, commit, key: 'user/2', credential: wrong })).rejects.toMatchObject({
      code: 'denied',
    });
  });

  it('opens no folder of this machine, and no address of ssh', async () => {
    for (const url of [repository.url, 'ssh://git@127.0.0.1/a'])
      await expect(mirrors().fetch({ url, commit, credential: OWN })).rejects.toMatchObject({ code: 'denied' });
  });
});

describe('a key of its own', () => {
  const key = (name: string): string => {
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', name, '-f', join(folder, name)]);
    return readFileSync(join(folder, name), 'utf8');
  };
  const url = (): string => `ssh://${userInfo().username}@127.0.0.1${repository.folder}`;

  it('is all that ssh is offered, by an agent that ends with git, and is in no file and no argument', async () => {
    const text = key('own');
    const publicKey = readFileSync(join(folder, 'own.pub'), 'utf8').trim();
    for (const name of ['own', 'own.pub']) rmSync(join(folder, name));
    // Says what it could offer, and is the server too.
    watch(
      'ssh',
      `ssh-add -L >>${folder}/offered; echo "$SSH_AUTH_SOCK" >${folder}/socket; while [ $# -gt 1 ]; do shift; done; exec sh -c "$1"`,
    );
    watch('git');
    process.env['SSH_AUTH_SOCK'] = '/of/the/user';
    try {
      const opened = mirrors({ sshSettings: ['IdentityFile=/of/the/user', 'UserKnownHostsFile=/known'] });
      const fetched = await opened.fetch({ url: url(), commit, credential: { key: text } });
      expect((await fetched.readFile(['.pipeline.yaml'], 100))?.text).toBe('private');
    } finally {
      delete process.env['SSH_AUTH_SOCK'];
    }
    // Wherever ssh's agents have theirs, below HOME since OpenSSH 10.1.
    const socket = readFileSync(join(folder, 'socket'), 'utf8').trim();
    expect(socket).toMatch(/\/\.penstock-agent-[^/]+\/socket$/u);
    expect(leftBehind()).toEqual([]);
    expect(new Set(readFileSync(join(folder, 'offered'), 'utf8').trim().split('\n'))).toEqual(new Set([publicKey]));
    expect(calls()).toContain('IdentityFile=none');
    expect(calls()).toContain('UserKnownHostsFile=/known');
    expect(calls()).not.toContain('/of/the/user');
    const [, line = ''] = text.split('\n');
    expect(calls()).not.toContain(line);
    expect(filesWith(line, join(folder, 'mirrors'))).toBe('');
  });

  it('is reached by nobody once git was killed, while its agent has not noticed', async () => {
    const text = key('own');
    watch('ssh', `echo "$SSH_AUTH_SOCK" >${folder}/socket; exec sleep 600`);
    const given = new AbortController();
    const asked = mirrors().findRef({
      url: url(),
      ref: 'refs/heads/main',
      credential: { key: text },
      signal: given.signal,
    });
    const why = asked.then(
      () => 'found',
      ({ message }: Error) => message,
    );
    await expect.poll(() => existsSync(join(folder, 'socket')), { timeout: 20_000, interval: 20 }).toBe(true);
    expect(leftBehind()).toHaveLength(1);
    given.abort(new Error('enough'));
    expect(await why).toBe('enough');
    expect(leftBehind()).toEqual([]);
  });

  it('that ssh cannot use is denied with what is wrong about it', async () => {
    watch('ssh', 'exit 1');
    for (const text of [key('half').slice(0, 150), locked()])
      await expect(mirrors().fetch({ url: url(), commit, credential: { key: text } })).rejects.toMatchObject({
        code: 'denied',
        message: expect.stringContaining('without a passphrase'),
      });
    await expect(
      mirrors().fetch({ url: 'http://127.0.0.1/a', commit, credential: { key: key('web') } }),
    ).rejects.toMatchObject({ code: 'denied', message: expect.stringContaining('give a token') });
  });

  function locked(): string {
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', 'passphrase', '-f', join(folder, 'locked')]);
    return readFileSync(join(folder, 'locked'), 'utf8');
  }
});
