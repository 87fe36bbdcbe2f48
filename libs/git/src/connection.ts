/**
 * How git reaches one address: the options and environment that allow this transport and no other, pinned to what the name
 * resolved to. The name is looked up once, here; neither git nor ssh looks it up again, so that a name cannot show a public
 * address to the check and a private one to the connection.
 */
import { lookup as systemLookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { GitError } from './errors.ts';
import { classOfAddress } from './ip-addresses.ts';
import type { CloneAddress, GitPolicy } from './policy.ts';

/** Every address of a name. */
export type Lookup = (host: string) => Promise<readonly string[]>;

export interface Connection {
  /** Before git's command. */
  readonly options: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export interface ConnectionOptions {
  readonly lookup: Lookup;
  /** `Name=value`, as ssh takes them by `-o`. */
  readonly sshSettings: readonly string[];
  /** Keys and agent of the user that this runs as are for others. */
  readonly hasOwnCredential: boolean;
}

const CONNECT_SECS_MAX = 15;
/** A server that sends less than this for so long has stalled; the deadline of the fetch is beyond it. */
const LOW_SPEED = { bytesPerSec: 1_000, secs: 30 };
const ADDRESSES_MAX = 16;

export const lookupAll: Lookup = async (host) =>
  (await systemLookup(host, { all: true, verbatim: true })).map(({ address }) => address);

/** @throws GitError `address_not_allowed`, `unreachable` */
export async function connectionTo(
  address: CloneAddress,
  policy: GitPolicy,
  { lookup, sshSettings, hasOwnCredential }: ConnectionOptions,
): Promise<Connection> {
  const { transport, host, port } = address;
  const env: Record<string, string> = { GIT_ALLOW_PROTOCOL: transport };
  const options = ['-c', 'protocol.allow=never', '-c', `protocol.${transport}.allow=always`];
  if (transport === 'file') return { options, env };
  const addresses = isIP(host) === 0 ? await resolveOnce(host, policy, lookup) : [];
  if (transport === 'ssh') {
    return {
      options,
      env: {
        ...env,
        GIT_SSH_VARIANT: 'ssh',
        GIT_SSH_COMMAND: sshCommand(
          host,
          addresses[0],
          policy,
          hasOwnCredential ? withoutIdentity(sshSettings) : sshSettings,
        ),
        ...(hasOwnCredential ? {} : pick('SSH_AUTH_SOCK')),
      },
    };
  }
  const pinned = addresses.map((one) => (isIP(one) === 6 ? `[${one}]` : one)).join(',');
  options.push(
    '-c',
    'http.followRedirects=false',
    '-c',
    'http.proxy=',
    '-c',
    'http.sslVerify=true',
    '-c',
    `http.lowSpeedLimit=${LOW_SPEED.bytesPerSec}`,
    '-c',
    `http.lowSpeedTime=${LOW_SPEED.secs}`,
  );
  if (pinned !== '') options.push('-c', `http.curloptResolve=${host}:${port}:${pinned}`);
  return {
    options,
    env: { ...env, NO_PROXY: '*', ...pick('SSL_CERT_FILE', 'SSL_CERT_DIR', 'GIT_SSL_CAINFO', 'GIT_SSL_CAPATH') },
  };
}

/** One address that is not allowed spoils them all: which of them is taken would be up to the name's owner. */
async function resolveOnce(host: string, policy: GitPolicy, lookup: Lookup): Promise<readonly string[]> {
  let found: readonly string[];
  try {
    found = await lookup(host);
  } catch (error) {
    throw new GitError('unreachable', `the name ${host} could not be resolved`, { cause: error });
  }
  if (found.length === 0) throw new GitError('unreachable', `the name ${host} has no address`);
  for (const one of found) {
    const kind = classOfAddress(one);
    if (kind === 'never' || (kind === 'private' && policy.mode === 'production')) {
      throw new GitError(
        'address_not_allowed',
        `the address of the repository is not allowed: ${host} leads to an address that is not ${policy.mode === 'production' ? 'a public one' : 'allowed'}`,
      );
    }
  }
  // Those of IPv4 first: where there is no IPv6, its addresses are given all the same.
  return found.toSorted((a, b) => isIP(a) - isIP(b)).slice(0, ADDRESSES_MAX);
}

/**
 * With the keys, unless the repository has its own, and the known hosts of the user that the service runs as, but without that
 * user's configuration, which could send the connection elsewhere. A shell reads it: what is not quoted in it is a number, a name
 * or an address.
 */
function sshCommand(host: string, address: string | undefined, policy: GitPolicy, own: readonly string[]): string {
  const settings = [
    // Of two that contradict each other ssh takes the first.
    ...own.map((setting) => `'${setting.replaceAll("'", `'\\''`)}'`),
    'BatchMode=yes',
    `ConnectTimeout=${CONNECT_SECS_MAX}`,
    'ServerAliveInterval=15',
    'ServerAliveCountMax=2',
    'ForwardAgent=no',
    'ForwardX11=no',
    'ClearAllForwardings=yes',
    'PermitLocalCommand=no',
    'ProxyCommand=none',
    'ProxyJump=none',
    'ControlMaster=no',
    'ControlPath=none',
    'UpdateHostKeys=no',
    // In development mode a host is trusted at first sight, as a person at a terminal would.
    `StrictHostKeyChecking=${policy.mode === 'production' ? 'yes' : 'accept-new'}`,
    ...(address === undefined ? [] : [`HostName=${address}`, `HostKeyAlias=${host}`, 'CheckHostIP=no']),
  ];
  return ['ssh', '-F', '/dev/null', ...settings.flatMap((setting) => ['-o', setting])].join(' ');
}

/** What an agent of its own has is all that is offered: no key of the user's, and nothing but keys. */
function withoutIdentity(settings: readonly string[]): readonly string[] {
  const others = settings.filter((setting) => !/^(?:Identit|CertificateFile|PreferredAuth)/iu.test(setting));
  return ['IdentityFile=none', 'PreferredAuthentications=publickey', ...others];
}

function pick(...names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = process.env[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}
