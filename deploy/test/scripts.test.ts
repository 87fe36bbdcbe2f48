/** What an operator calls by hand: with a broker, a database and an engine that only say what was asked of them. */
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const script = (name: string): string => fileURLToPath(new URL(`../${name}`, import.meta.url));

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-deploy-scripts-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function program(name: string, text: string): string {
  const path = join(folder, 'bin', name);
  mkdirSync(join(folder, 'bin'), { recursive: true });
  writeFileSync(path, `#!/bin/sh\nset -eu\n${text}`, { mode: 0o755 });
  return path;
}

function call(name: string, args: readonly string[], env: Readonly<Record<string, string>>): string {
  return execFileSync('sh', [script(name), ...args], {
    cwd: folder,
    encoding: 'utf8',
    env: { PATH: `${join(folder, 'bin')}:${process.env['PATH']}`, ...env },
  });
}

describe('compose/setup.sh', () => {
  /** As the generator leaves it in the folder that it is given, whatever that is called. */
  const ENGINE = `while [ "$1" != --volume ]; do shift; done
out=\${2%:/out}
mkdir -p "$out/credentials"
echo made >"$out/nats.conf"
echo made >"$out/accounts.conf"
echo word >"$out/credentials/setup"
`;
  const setUp = (address: string): string =>
    call('compose/setup.sh', [address], {
      CONTAINER_ENGINE: program('engine', ENGINE),
      PENSTOCK_SECRETS: join(folder, 'my secrets'),
      PENSTOCK_SETTINGS: join(folder, 'settings'),
    });
  const settings = (): string => readFileSync(join(folder, 'settings'), 'utf8');

  it('called again it changes the address, and keeps secrets and what else was set', () => {
    setUp('https://one.example');
    expect(settings()).toBe('PENSTOCK_URL=https://one.example\n');
    const key = readFileSync(join(folder, 'my secrets/master-key'), 'utf8');
    writeFileSync(join(folder, 'settings'), `${settings()}GIT_HOST_CLIENT_ID=mine\nSERVICE_ADMINS=ada\n`);
    setUp('https://other.example');
    expect(settings()).toBe('PENSTOCK_URL=https://other.example\nGIT_HOST_CLIENT_ID=mine\nSERVICE_ADMINS=ada\n');
    expect(readFileSync(join(folder, 'my secrets/master-key'), 'utf8')).toBe(key);
  });

  it('leaves the secrets to nobody else, also in a folder that others could read', () => {
    mkdirSync(join(folder, 'my secrets'));
    chmodSync(join(folder, 'my secrets'), 0o755);
    setUp('https://ci.example');
    expect(statSync(join(folder, 'my secrets')).mode & 0o777).toBe(0o700);
    expect(readFileSync(join(folder, 'my secrets/nats-setup'), 'utf8')).toBe('nats://setup:word@nats:4222');
  });
});

describe('backup.sh and restore.sh', () => {
  /** `nats --inbox-prefix P stream …` */
  const NATS = `[ "$1" = --inbox-prefix ] && shift 2
case "$1 $2" in
'stream ls') [ -e '{there}' ] || exit 0; printf 'JOURNAL\\nLOGS\\n' ;;
'stream info') echo '{"config":{"max_bytes":100},"state":{"messages":1,"bytes":10}}' ;;
'stream backup') mkdir -p "$4" && echo data >"$4/backup.json" ;;
esac
`;

  it('take the path of a database from the folder where they are called', () => {
    const there = join(folder, 'there');
    program('nats', NATS.replace('{there}', there));
    program('sqlite3', `[ "$1" = -readonly ] && cp "$2" store.sqlite\n`);
    mkdirSync(join(folder, 'data'));
    writeFileSync(join(folder, 'data/store.sqlite'), 'the runs');
    writeFileSync(there, '');
    const broker = { SERVICE_NATS_URL: 'nats://backup:word@127.0.0.1:1' };
    const made = call('backup.sh', ['monday'], { ...broker, SERVICE_STORE_URL: 'sqlite:data/store.sqlite' });
    expect(made).toContain('monday is a whole backup');
    rmSync(there);
    const put = call('restore.sh', ['monday'], { ...broker, SERVICE_STORE_URL: 'sqlite:data/again.sqlite' });
    expect(put).toContain('Restored.');
    expect(readdirSync(join(folder, 'data')).toSorted()).toEqual(['again.sqlite', 'store.sqlite']);
    expect(readFileSync(join(folder, 'data/again.sqlite'), 'utf8')).toBe('the runs');
  });

  it('take the certificates of the broker from the folder where they are called', () => {
    program('nats', `cat "$NATS_CA" >&2\n[ "$NATS_CERT" = /etc/cert ] || exit 1\n${NATS.replace('{there}', folder)}`);
    program('sqlite3', `[ "$1" = -readonly ] && cp "$2" store.sqlite\n`);
    writeFileSync(join(folder, 'store.sqlite'), 'the runs');
    writeFileSync(join(folder, 'ca.pem'), 'the authority');
    const env = {
      SERVICE_NATS_URL: 'tls://backup:word@127.0.0.1:1',
      SERVICE_STORE_URL: 'sqlite:store.sqlite',
      NATS_CA: 'ca.pem',
      NATS_CERT: '/etc/cert',
    };
    expect(call('backup.sh', ['monday'], env)).toContain('monday is a whole backup');
  });

  it.each([
    ['is not reached', 'exit 1', 'backup: nats stream info has failed\n'],
    [
      'says nothing of it',
      'echo {}',
      'backup: nats does not tell how full JOURNAL is: is it the broker of Penstock?\n',
    ],
    ['has it half full', `echo '{"max_bytes":100,"state":{"bytes":50}}'`, 'JOURNAL is half full'],
  ])('say what is the matter with the journal, and nothing else, where the broker %s', (_, answer, said) => {
    program('nats', `[ "$4" = info ] || exit 0\n${answer}\n`);
    program('sqlite3', 'exit 0\n');
    writeFileSync(join(folder, 'store.sqlite'), 'the runs');
    const env = { SERVICE_NATS_URL: 'nats://backup:word@127.0.0.1:1', SERVICE_STORE_URL: 'sqlite:store.sqlite' };
    const { status, stderr } = spawnSync('sh', [script('backup.sh'), 'monday'], {
      cwd: folder,
      encoding: 'utf8',
      env: { PATH: `${join(folder, 'bin')}:${process.env['PATH']}`, ...env },
    });
    expect([status, stderr]).toEqual([1, expect.stringContaining(said)]);
    expect(stderr.trim().split('\n')).toHaveLength(1);
  });
});
