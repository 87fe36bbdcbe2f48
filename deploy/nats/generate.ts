/**
 * Writes a nats-server configuration with least privilege: see README.md beside it.
 *
 * Passwords are made once and kept in `<out>/credentials/<user>` (mode 0600); the configuration holds their bcrypt hashes.
 * A second run keeps every password that is there, makes those of new runners, and removes those of runners that are no
 * longer named: then `nats-server --signal reload`.
 */
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { brokerPermissions } from '@penstock/bus';
import { bcrypt } from './bcrypt.ts';
import { accountsConfiguration, ROUTE_USER, serverConfiguration, type ServerSettings } from './configuration.ts';

const USAGE = `usage: node bootstrap/run.js deploy/nats/generate.ts --runners r1,r2 --out <folder> [options]
  --listen <host:port>      for clients; default 0.0.0.0:4222
  --store-dir <folder>      on the servers; default /var/lib/nats
  --store-bytes-max <n>     of the streams on disk; default 10737418240 (they reserve 6.2 GiB)
  --sync always|default     default: SERVICE_NATS_SYNC, else always
  --tls <folder>            on the servers, with server.crt, server.key and ca.crt
  --cluster <list>          name=host:port of each server's route, e.g. n1=nats-1:6222,n2=nats-2:6222,n3=nats-3:6222`;

const PASSWORD_BYTES = 24;
const STORE_BYTES_MAX = 10 * 1024 ** 3;

class Usage extends Error {}

interface Arguments extends Omit<ServerSettings, 'name' | 'cluster'> {
  readonly runners: readonly string[];
  readonly out: string;
  readonly routes: readonly { readonly name: string; readonly address: string }[];
}

function readArguments(args: readonly string[]): Arguments {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({
    args: [...args],
    options: {
      runners: text,
      out: text,
      listen: text,
      'store-dir': text,
      'store-bytes-max': text,
      sync: text,
      tls: text,
      cluster: text,
    },
  });
  if (values.out === undefined) throw new Usage('--out is missing');
  const sync = values.sync ?? process.env['SERVICE_NATS_SYNC'] ?? 'always';
  if (sync !== 'always' && sync !== 'default') throw new Usage(`sync is always or default, not ${sync}`);
  const storeBytesMax = Number(values['store-bytes-max'] ?? STORE_BYTES_MAX);
  if (!Number.isSafeInteger(storeBytesMax) || storeBytesMax <= 0)
    throw new Usage('--store-bytes-max is a number of bytes');
  const routes = split(values.cluster).map((route) => {
    const [, name, address] = /^([\w-]+)=([^\s"@/]+:\d+)$/.exec(route) ?? [];
    if (name === undefined || address === undefined) throw new Usage(`"${route}" is not of the form name=host:port`);
    return { name, address };
  });
  if (routes.length === 1 || new Set(routes.map(({ name }) => name)).size !== routes.length)
    throw new Usage('a cluster has several servers with a name each');
  return {
    runners: split(values.runners),
    out: resolve(values.out),
    listen: values.listen ?? '0.0.0.0:4222',
    storeDir: values['store-dir'] ?? '/var/lib/nats',
    storeBytesMax,
    sync,
    routes,
    tlsFolder: values.tls,
  };
}

function split(listed: string | undefined): string[] {
  return (listed ?? '')
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

async function generate(settings: Arguments): Promise<void> {
  const { out, runners, routes } = settings;
  const permissions = brokerPermissions(runners);
  const users = [...permissions.core, ...permissions.peers].map(({ name }) => name);
  const kept = routes.length > 0 ? [...users, ROUTE_USER] : users;
  const passwords = await passwordsOf(join(out, 'credentials'), kept);
  const passwordOf = (user: string): string => passwords.get(user) ?? '';
  const hashes = new Map(users.map((user) => [user, bcrypt(passwordOf(user))]));
  await writeSecret(join(out, 'accounts.conf'), accountsConfiguration(permissions, hashes));
  if (routes.length === 0) {
    await writeSecret(join(out, 'nats.conf'), serverConfiguration({ ...settings, name: 'penstock' }));
  }
  for (const { name, address } of routes) {
    const listen = `0.0.0.0:${address.slice(address.lastIndexOf(':') + 1)}`;
    const cluster = { listen, password: passwordOf(ROUTE_USER), servers: routes.map((route) => route.address) };
    await writeSecret(join(out, `nats-${name}.conf`), serverConfiguration({ ...settings, name, cluster }));
  }
  process.stdout.write(
    `${users.length} users in ${join(out, 'accounts.conf')}; a password each in ${join(out, 'credentials')}\n`,
  );
}

async function passwordsOf(folder: string, users: readonly string[]): Promise<Map<string, string>> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await chmod(folder, 0o700);
  for (const name of await readdir(folder)) if (!users.includes(name)) await rm(join(folder, name));
  const passwords = new Map<string, string>();
  for (const user of users) {
    const file = join(folder, user);
    const present = (
      await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return '';
        throw error;
      })
    ).trim();
    const password = present === '' ? randomBytes(PASSWORD_BYTES).toString('base64url') : present;
    if (present === '') await writeSecret(file, `${password}\n`);
    passwords.set(user, password);
  }
  return passwords;
}

/** Whole or not at all, and never readable by others. */
async function writeSecret(file: string, text: string): Promise<void> {
  const fresh = `${file}.${process.pid}.new`;
  await writeFile(fresh, text, { mode: 0o600, flag: 'wx' });
  await rename(fresh, file);
}

try {
  await generate(readArguments(process.argv.slice(2)));
} catch (error) {
  const known =
    error instanceof Usage ||
    error instanceof RangeError ||
    (error as NodeJS.ErrnoException).code?.startsWith('ERR_PARSE_ARGS') === true;
  if (!known) throw error;
  process.stderr.write(`${(error as Error).message}\n${USAGE}\n`);
  process.exitCode = 2;
}
