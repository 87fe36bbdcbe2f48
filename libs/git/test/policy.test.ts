import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { GitError } from '../src/errors.ts';
import { checkCloneUrl, checkCommit, type GitPolicy } from '../src/policy.ts';
import { classOfAddress } from '../src/ip-addresses.ts';
import { DEVELOPMENT, mirrorsIn, temporaryFolder } from './repositories.ts';

const PRODUCTION: GitPolicy = {
  mode: 'production',
  allowedHosts: ['github.com', 'gitlab.com', '10.0.0.1', '::ffff:127.0.0.1'],
};
const COMMIT = 'a'.repeat(40);

/** Refused whatever the mode: no part of a system may see them. */
const HOSTILE = [
  '',
  '-',
  '--upload-pack=touch x',
  '-oProxyCommand=touch x',
  'ext::sh -c id',
  'ext::sh',
  'fd::17',
  'fd::17,18/foo',
  'foo::bar',
  'git::https://github.com/a/b',
  'ssh://-oProxyCommand=touch/a',
  'ssh://-oProxyCommand=touch${IFS}x/a',
  'ssh://git@-oProxyCommand=x/a',
  'ssh://-x@host/a',
  'git@host:-x',
  'git@-x:a/b',
  '-x@host:a/b',
  'git@host::a/b',
  '//evil',
  '//evil/a/b',
  '///etc',
  'file:////evil/share',
  'file://evil/share',
  'file://localhost/etc',
  'https://ok@evil/',
  'https://github.com@evil.example/a/b',
  'https://user:pass@github.com/a/b',
  'https://:@github.com/a/b',
  'https://github.com:pass@evil/a',
  'ssh://git:pass@github.com/a/b',
  'https://github.com\\@evil.example/a/b',
  'https://github.com%2f@evil/a',
  'https://evil%2egithub.com/a',
  'https://github.com#@evil/a/b',
  'https://github.com?@evil/a/b',
  'https://github.com/a/b?x=y',
  'https://github.com/a/b#main',
  'https://[fe80::1]/a/b',
  'https://[fe80::1%25eth0]/a/b',
  'https://[::ffff:169.254.169.254]/a',
  'https://[::ffff:a9fe:a9fe]/a',
  'https://[64:ff9b::a9fe:a9fe]/a',
  'https://[2002:a9fe:a9fe::]/a',
  'https://[fd00:ec2::254]/a',
  'https://[::1/a',
  'https://::1/a',
  'http://169.254.169.254/latest/meta-data/',
  'https://169.254.169.254/a/b',
  'ssh://git@169.254.169.254/a/b',
  'https://2130706433/a/b',
  'https://0x7f000001/a/b',
  'https://0x7f.1/a/b',
  'https://0177.0.0.1/a/b',
  'https://127.1/a/b',
  'https://127.0.0.1./a/b',
  'https://00127.0.0.1/a/b',
  'https://0/a/b',
  'https://1.2.3.4.5/a/b',
  'https://127.0.0.0x1/a',
  'https://github.com./a/b',
  'https://.github.com/a/b',
  'https://github..com/a/b',
  'https://git_hub.com/a/b',
  'https://-github.com/a/b',
  'https:///a/b',
  'https://',
  'https:/github.com/a/b',
  'https:github.com/a/b',
  'https://gıthub.com/a/b',
  'https://github。com/a/b',
  'https://gіthub.com/a/b',
  'https://github.com/а/b',
  'https://①②⑦.0.0.1/a',
  'https://github.com/a b',
  'https://github.com/a\nb',
  'https://github.com/a\rb',
  'https://github.com/a\tb',
  'https://github.com/a\0b',
  'https://github.com\n.evil/a',
  ' https://github.com/a/b',
  'https://github.com/a/b ',
  'https://github.com/a%00b',
  'https://github.com/a%0ab',
  'https://github.com/a%0Db',
  'https://github.com/a%zzb',
  'https://github.com/a%7Fb',
  'https://github.com:0/a/b',
  'https://github.com:65536/a/b',
  'https://github.com:080/a/b',
  'https://github.com:/a/b',
  'https://github.com:443x/a/b',
  'https://github.com:99999/a',
  'ftp://github.com/a/b',
  'git://github.com/a/b',
  'rsync://github.com/a',
  'javascript://github.com/a',
  'data:text/plain,x',
  'gopher://127.0.0.1/a',
  'git+ssh://github.com/a/b',
  'C:\\repo',
  'repo.git',
  './repo',
  '../repo',
  '~/repo',
  'github.com/a/b',
  'github.com:a/b',
  '`touch x`',
  '$(touch x)',
  `https://github.com/${'a'.repeat(3_000)}`,
];

/** Allowed on a laptop, never in production. */
const LOCAL = [
  '/srv/repo.git',
  'file:///srv/repo.git',
  'file:///etc',
  'http://127.0.0.1:8080/a/b',
  'http://localhost/a/b',
  'https://127.0.0.1/a',
  'https://[::1]/a',
  'https://[::ffff:127.0.0.1]/a',
  'https://10.0.0.1/a',
  'https://192.168.1.1/a/b',
  'https://[fd12::1]/a',
  'ssh://git@git.corp.example:2222/a/b',
  'https://github.com:8443/a/b',
  'https://xn--gthub-n4a.com/a/b',
  'https://github.com.evil.example/a/b',
  'https://evil-github.com/a',
  'http://github.com/a/b',
  'https://0.0.0.0/a',
];

const ALLOWED = [
  'https://github.com/a/b',
  'https://github.com/a/b.git',
  'https://GitHub.com/a/b',
  'https://github.com:443/a/b',
  'https://gitlab.com/group/sub/project.git',
  'git@github.com:a/b.git',
  'ssh://git@github.com/a/b.git',
  'ssh://git@gitlab.com:22/a/b',
  'https://github.com/~user/re.po_x-y',
];

let folder: string;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('a clone address', () => {
  it.each(HOSTILE)('is refused in either mode: %j', (url) => {
    for (const policy of [PRODUCTION, DEVELOPMENT]) {
      expect(() => checkCloneUrl(url, policy)).toThrow(expect.objectContaining({ code: 'address_not_allowed' }));
    }
  });

  it.each(LOCAL)('is for development mode only: %j', (url) => {
    expect(checkCloneUrl(url, DEVELOPMENT).url).toBeTypeOf('string');
    expect(() => checkCloneUrl(url, PRODUCTION)).toThrow(expect.objectContaining({ code: 'address_not_allowed' }));
  });

  it.each(ALLOWED)('is allowed where its host is: %j', (url) => {
    expect(checkCloneUrl(url, PRODUCTION).host).toMatch(/^git(hub|lab)\.com$/);
  });

  it('is never shown with what stood before an @, in the refusal neither', () => {
    const refusal = (() => {
      try {
        return checkCloneUrl('https://user:canary@github.com/a/b', PRODUCTION);
      } catch (error) {
        return error;
      }
    })();
    expect(refusal).toBeInstanceOf(GitError);
    expect(String(refusal)).not.toContain('canary');
  });
});

it.each([
  '',
  'main',
  'HEAD',
  '--output=/x',
  'a'.repeat(39),
  'a'.repeat(41),
  `${'a'.repeat(39)}g`,
  `${COMMIT}\n`,
  '0'.repeat(40),
  'refs/heads/$(touch x)',
  `${COMMIT}^`,
])('a commit is 40 or 64 digits, not %j', (commit) => {
  expect(() => checkCommit(commit)).toThrow(expect.objectContaining({ code: 'not_found' }));
});

it.each([
  ['140.82.121.3', 'public'],
  ['1.1.1.1', 'public'],
  ['172.32.0.1', 'public'],
  ['100.128.0.1', 'public'],
  ['2606:50c0::1', 'public'],
  ['2a00:1450::1', 'public'],
  ['127.0.0.1', 'private'],
  ['10.1.2.3', 'private'],
  ['172.31.255.255', 'private'],
  ['192.168.0.1', 'private'],
  ['100.64.0.1', 'private'],
  ['0.0.0.0', 'private'],
  ['198.18.0.1', 'private'],
  ['::', 'private'],
  ['::1', 'private'],
  ['::7f00:1', 'private'],
  ['::ffff:127.0.0.1', 'private'],
  ['::ffff:8.8.8.8', 'private'],
  ['0:0:0:0:0:ffff:a00:1', 'private'],
  ['64:ff9b::a00:1', 'private'],
  ['2002:7f00:1::', 'private'],
  ['fd12::1', 'private'],
  ['fec0::1', 'private'],
  ['2001:db8::1', 'private'],
  ['169.254.169.254', 'never'],
  ['fe80::1', 'never'],
  ['febf::1', 'never'],
  ['::ffff:169.254.1.1', 'never'],
  ['64:ff9b::a9fe:a9fe', 'never'],
  ['2002:a9fe:a9fe::1', 'never'],
  ['fd00:ec2::254', 'never'],
  ['224.0.0.1', 'never'],
  ['ff02::1', 'never'],
  ['fe80::1%eth0', 'never'],
  ['localhost', 'never'],
] as const)('the address %s is %s', (address, kind) => {
  expect(classOfAddress(address)).toBe(kind);
});

describe('nothing comes of a refused address: no process, no look-up, no connection, no file', () => {
  let path: string | undefined;
  let traces: string;
  beforeEach(() => {
    // A git and an ssh that leave a trace where they are run.
    const programs = join(folder, 'programs');
    traces = join(folder, 'traces');
    mkdirSync(programs);
    for (const name of ['git', 'ssh', 'sh']) {
      writeFileSync(join(programs, name), `#!/bin/sh\necho "$0 $*" >> ${traces}\n`);
      chmodSync(join(programs, name), 0o755);
    }
    path = process.env['PATH'];
    process.env['PATH'] = `${programs}:${path}`;
  });
  afterEach(() => {
    if (path !== undefined) process.env['PATH'] = path;
  });

  it.each([
    ['production', PRODUCTION, [...HOSTILE, ...LOCAL]],
    ['development', DEVELOPMENT, HOSTILE],
  ] as const)('in %s mode nothing is asked, started or written', async (_mode, policy, urls) => {
    const lookups: string[] = [];
    const mirrors = mirrorsIn(join(folder, 'mirrors'), {
      policy,
      lookup: (host) => {
        lookups.push(host);
        return Promise.resolve(['140.82.121.3']);
      },
    });
    for (const url of urls)
      await expect(mirrors.fetch({ url, commit: COMMIT })).rejects.toMatchObject({ code: 'address_not_allowed' });
    await expect(mirrors.fetch({ url: 'https://github.com/a/b', commit: '--output=/x' })).rejects.toMatchObject({
      code: 'not_found',
    });
    await mirrors.close();
    expect(lookups).toEqual([]);
    expect(existsSync(traces)).toBe(false);
    expect(readdirSync(join(folder, 'mirrors'))).toEqual([]);
  });

  it.each([
    ['production', PRODUCTION, 'https://github.com/a/b', ['127.0.0.1']],
    ['production', PRODUCTION, 'https://github.com/a/b', ['140.82.121.3', '10.0.0.7']],
    ['production', PRODUCTION, 'git@github.com:a/b.git', ['::1']],
    ['production', PRODUCTION, 'https://github.com/a/b', ['::ffff:10.0.0.1']],
    ['production', PRODUCTION, 'https://github.com/a/b', ['100.64.0.1']],
    ['production', PRODUCTION, 'https://github.com/a/b', ['fd12::1']],
    ['production', PRODUCTION, 'https://github.com/a/b', ['0.0.0.0']],
    ['production', PRODUCTION, 'https://github.com/a/b', ['64:ff9b::7f00:1']],
    ['development', DEVELOPMENT, 'http://rebinding.example/a/b', ['169.254.169.254']],
    ['development', DEVELOPMENT, 'http://rebinding.example/a/b', ['127.0.0.1', 'fe80::1']],
    ['development', DEVELOPMENT, 'ssh://git@rebinding.example/a/b', ['::ffff:169.254.169.254']],
  ] as const)('of a name that leads elsewhere, in %s mode: %j %j %j', async (_mode, policy, url, addresses) => {
    const mirrors = mirrorsIn(join(folder, 'mirrors'), { policy, lookup: () => Promise.resolve(addresses) });
    await expect(mirrors.fetch({ url, commit: COMMIT })).rejects.toMatchObject({ code: 'address_not_allowed' });
    await mirrors.close();
    expect(existsSync(traces)).toBe(false);
    expect(readdirSync(join(folder, 'mirrors'))).toEqual([]);
  });

  it('a name is looked up once, and the connection goes to what was found then (DNS rebinding)', async () => {
    const real = createServer();
    const connections: string[] = [];
    real.on('connection', (socket) => {
      connections.push('connected');
      socket.end('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
    });
    real.listen(0, '127.0.0.1');
    await once(real, 'listening');
    process.env['PATH'] = path;
    const answers = [['127.0.0.1'], ['127.0.0.2']];
    let lookups = 0;
    const mirrors = mirrorsIn(join(folder, 'mirrors'), { lookup: () => Promise.resolve(answers[lookups++] ?? []) });
    const { port } = real.address() as { port: number };
    // A name that nobody but the pin knows.
    await expect(mirrors.fetch({ url: `http://rebinding.invalid:${port}/a/b`, commit: COMMIT })).rejects.toMatchObject({
      code: 'not_found',
    });
    await mirrors.close();
    real.close();
    expect(lookups).toBe(1);
    expect(connections).not.toEqual([]);
  });

  it("ssh gets one address, the name for its key, and nobody's configuration", async () => {
    const programs = join(folder, 'programs');
    rmSync(join(programs, 'git'));
    rmSync(join(programs, 'sh'));
    const mirrors = mirrorsIn(join(folder, 'mirrors'), {
      policy: PRODUCTION,
      lookup: () => Promise.resolve(['2606:50c0::1', '140.82.121.3']),
    });
    await expect(mirrors.fetch({ url: 'git@github.com:a/b.git', commit: COMMIT })).rejects.toMatchObject({
      code: 'unreachable',
    });
    await mirrors.close();
    const call = readFileSync(traces, 'utf8');
    for (const word of [
      '-F /dev/null',
      'BatchMode=yes',
      'ProxyCommand=none',
      'StrictHostKeyChecking=yes',
      'HostName=140.82.121.3',
      'HostKeyAlias=github.com',
      "git@github.com git-upload-pack 'a/b.git'",
    ])
      expect(call).toContain(word);
  });
});
