/**
 * What a stage with a network namespace of its own may reach: a filter in that namespace, there before the stage begins, which the
 * stage has no right to change. A sandbox has a user-space stack (slirp4netns) behind it, a container what its engine gives.
 */
import { lookup } from 'node:dns/promises';
import { isIPv4 } from 'node:net';
import { networkInterfaces } from 'node:os';

/** Of a range that is for tests of network devices, and so nobody's: the stack's own addresses must hide none that a stage wants. */
export const STACK_NETWORK = '198.18.0.0/24';
const STACK_RESOLVER = '198.18.0.3';

/** Metadata services, and what no router passes on. */
const NEVER = ['0.0.0.0/8', '127.0.0.0/8', '169.254.0.0/16', '224.0.0.0/4', '240.0.0.0/4', STACK_NETWORK];
const PRIVATE = ['10.0.0.0/8', '100.64.0.0/10', '172.16.0.0/12', '192.0.0.0/24', '192.168.0.0/16', '198.18.0.0/15'];

export const RESOLVER_FILE = `nameserver ${STACK_RESOLVER}\n`;

/**
 * As `nft` reads it. `denied`: addresses that no stage is to reach. `isPublic`: of the network only what everybody can reach.
 * `resolvers`: of names, reached wherever they are.
 */
export function networkRules(
  denied: readonly string[],
  isPublic: boolean,
  resolvers: readonly string[] = [STACK_RESOLVER],
): string {
  const refused = [...NEVER, ...denied.filter((address) => isIPv4(address))];
  if (isPublic) refused.push(...PRIVATE, ...ownAddresses());
  const rules = [
    'oifname "lo" accept',
    ...resolvers.map((address) => `ip daddr ${address} meta l4proto { tcp, udp } th dport 53 accept`),
    ...[...new Set(refused)].map((range) => `ip daddr ${range} reject with icmp type admin-prohibited`),
    'meta nfproto ipv6 reject',
  ];
  return [
    'add table inet penstock',
    'add chain inet penstock output { type filter hook output priority 0; policy accept; }',
    ...rules.map((rule) => `add rule inet penstock output ${rule}`),
  ].join('; ');
}

function ownAddresses(): string[] {
  return Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .flatMap(({ family, address }) => (family === 'IPv4' ? [address] : []));
}

/** Of names and addresses. A name that is not found now is not reached by it now either. */
export async function addressesOf(hosts: readonly string[]): Promise<string[]> {
  const found = await Promise.all(
    hosts.map((host) => lookup(host, { all: true, family: 4 }).catch((): { address: string }[] => [])),
  );
  return found.flat().map(({ address }) => address);
}
