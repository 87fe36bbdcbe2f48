/** The embedded broker's configuration file: where it listens, who may come in, and how much of disk and memory it may fill. */
import { readdir, readFile, rename, stat, statfs, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { accountsConfiguration, type BrokerCredential, fleetPermissions, runnerUserName } from '@penstock/bus';

export interface StoreLimits {
  /** The broker's `max_file_store`. */
  readonly storeBytesMax: number;
  /** For `ensureStreams`: both fit into the store, with room for the buckets. */
  readonly journalBytesMax: number;
  readonly logsBytesMax: number;
}

/** What stays free belongs to workspaces, the database and everything else on that disk. */
const DISK_SHARE = 0.7;
const STORE_BYTES_MAX = 20 * 1024 ** 3;
/** Less than this is no store: the first journal block alone has some megabytes. */
const STORE_BYTES_MIN = 64 * 1024 ** 2;
const JOURNAL_SHARE = 0.3;
const LOGS_SHARE = 0.6;
/**
 * The broker collects more and more as it comes near this, and one fast pass over a large stream takes it to 600 MiB without it. Each
 * delivery that waits takes some 0.5 KB there: with 384 MiB the collector had most of a processor from 500,000 of the million on.
 */
const MEMORY_SHARE = 1 / 8;
const [MEMORY_BYTES_MIN, MEMORY_BYTES_MAX] = [384 * 1024 ** 2, 1024 ** 3];

export async function storeLimits(storeDir: string, limitFile: string): Promise<StoreLimits> {
  const { bavail, bsize } = await statfs(join(storeDir, '..'));
  const used = await bytesIn(storeDir);
  const fitting = Math.floor(Math.min(STORE_BYTES_MAX, (bavail * bsize + used) * DISK_SHARE));
  const wanted = Math.max(STORE_BYTES_MIN, fitting);
  // Below what its streams have reserved the broker refuses every change to them, even a smaller reservation: the limit
  // never goes below an earlier one.
  const earlier = Number(await readFile(limitFile, 'utf8').catch(() => '0'));
  const storeBytesMax = Math.max(wanted, earlier || 0);
  if (storeBytesMax !== earlier) {
    // A full disk, on which a server is often started again, must not take the earlier one away.
    await writeFile(`${limitFile}.new`, String(storeBytesMax), { mode: 0o600 });
    await rename(`${limitFile}.new`, limitFile);
  }
  return {
    storeBytesMax,
    journalBytesMax: Math.floor(wanted * JOURNAL_SHARE),
    logsBytesMax: Math.floor(wanted * LOGS_SHARE),
  };
}

/** Its `GOMEMLIMIT`, by what the machine has. */
export function brokerMemoryBytes(machineBytes: number): number {
  return Math.floor(Math.min(MEMORY_BYTES_MAX, Math.max(MEMORY_BYTES_MIN, machineBytes * MEMORY_SHARE)));
}

async function bytesIn(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const sizes = entries
    .filter((entry) => entry.isFile())
    .map(async (entry) => {
      const file = await stat(join(entry.parentPath, entry.name)).catch(() => null);
      return file?.size ?? 0;
    });
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

const PORT_MIN = 10_240;
const PORT_TRIES = 50;
const EPHEMERAL_PORT_MIN = 32_768;

/**
 * A free port below the range that outgoing connections are given. Inside that range a client that dials a broker which
 * is being restarted can be given the broker's own port and connect to itself, and the broker would not get it back.
 */
export async function freePort(): Promise<number> {
  const range = await readFile('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').catch(() => '');
  const ephemeralMin = Number.parseInt(range, 10) || EPHEMERAL_PORT_MIN;
  const below = ephemeralMin > PORT_MIN + 1_000 ? ephemeralMin : EPHEMERAL_PORT_MIN;
  for (let attempt = 0; attempt < PORT_TRIES; attempt += 1) {
    const port = randomInt(PORT_MIN, below);
    if (await isFree(port)) return port;
  }
  throw new Error(`no free port between ${PORT_MIN} and ${below} on 127.0.0.1`);
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return true;
  } catch {
    return false;
  } finally {
    server.close();
  }
}

export interface BrokerRunner {
  readonly publicKey: string;
  /** Whose stages alone it is given; absent: everybody's. */
  readonly tenant?: string | undefined;
}

export interface BrokerConfig {
  readonly port: number;
  /** Of the WebSocket listener, for runners of a fleet; the API leads them there. */
  readonly fleetPort: number;
  readonly user: string;
  readonly password: string;
  /** Who may have this file read again. */
  readonly systemUser: string;
  readonly systemPassword: string;
  /** Runners of the fleet that may come in (P37). */
  readonly runners: ReadonlyMap<string, BrokerRunner>;
  readonly storeDir: string;
  readonly storeBytesMax: number;
  readonly logFile: string;
  readonly sync: 'default' | 'always';
}

/** For KV and meta data only: all our streams are on disk. */
const MEMORY_STORE_BYTES_MAX = 64 * 1024 ** 2;
/** The broker's own log is rolled at this size. */
const LOG_BYTES_MAX = 4 * 1024 ** 2;

export function brokerConfiguration(config: BrokerConfig): string {
  const quoted = JSON.stringify;
  const { user, systemUser, runners } = config;
  const credentials = new Map<string, BrokerCredential>([
    [user, { password: config.password }],
    [systemUser, { password: config.systemPassword }],
    ...[...runners].map(([runner, { publicKey }]) => [runnerUserName(runner), { publicKey }] as const),
  ]);
  return `# Written by penstock serve at each start, and whenever the fleet changes; passwords are made anew at each start.
server_name: penstock
listen: "127.0.0.1:${config.port}"
# Runners of a fleet come in here, by way of the server's own port, where TLS ends.
websocket { listen: "127.0.0.1:${config.fleetPort}", no_tls: true }
${accountsConfiguration(
  fleetPermissions(
    { user, systemUser },
    [...runners].map(([id, { tenant }]) => ({ id, tenant })),
  ),
  credentials,
)}log_file: ${quoted(config.logFile)}
logfile_size_limit: ${LOG_BYTES_MAX}
logfile_max_num: 2
jetstream {
  store_dir: ${quoted(config.storeDir)}
  max_file_store: ${config.storeBytesMax}
  max_memory_store: ${MEMORY_STORE_BYTES_MAX}
${config.sync === 'always' ? '  sync_interval: always\n' : ''}}
`;
}
