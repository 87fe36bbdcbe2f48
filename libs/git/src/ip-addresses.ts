/** Which addresses a clone may reach. Only canonical spellings are judged here: others never get so far (`policy.ts`). */
import { BlockList, isIP } from 'node:net';

/** A list for each family: an IPv4 address would be found in the range of those mapped into IPv6. */
interface Ranges {
  readonly ipv4: BlockList;
  readonly ipv6: BlockList;
}

/** Refused everywhere: where clouds keep their credentials, and addresses that name no single host. */
const never: Ranges = {
  ipv4: blockList('ipv4', [
    ['169.254.0.0', 16],
    ['224.0.0.0', 4],
    ['255.255.255.255', 32],
  ]),
  // The last one is AWS's metadata service, in the unique-local range.
  ipv6: blockList('ipv6', [
    ['fe80::', 10],
    ['ff00::', 8],
    ['fd00:ec2::254', 128],
  ]),
};

/** Refused in production mode besides: what is not on the public internet, and what only carries such an address inside. */
const notPublic: Ranges = {
  ipv4: blockList('ipv4', [
    ['0.0.0.0', 8],
    ['10.0.0.0', 8],
    ['100.64.0.0', 10],
    ['127.0.0.0', 8],
    ['172.16.0.0', 12],
    ['192.0.0.0', 24],
    ['192.0.2.0', 24],
    ['192.88.99.0', 24],
    ['192.168.0.0', 16],
    ['198.18.0.0', 15],
    ['198.51.100.0', 24],
    ['203.0.113.0', 24],
    ['240.0.0.0', 4],
  ]),
  ipv6: blockList('ipv6', [
    ['::', 96],
    ['::ffff:0:0', 96],
    ['64:ff9b::', 96],
    ['64:ff9b:1::', 48],
    ['100::', 64],
    ['2001::', 23],
    ['2001:db8::', 32],
    ['2002::', 16],
    ['fc00::', 7],
    ['fec0::', 10],
  ]),
};

export type AddressClass = 'public' | 'private' | 'never';

/** `address`: as `net.isIP` knows it, without brackets; with a zone it is link-local, and refused. */
export function classOfAddress(address: string): AddressClass {
  const family = isIP(address);
  if (family === 0 || address.includes('%')) return 'never';
  if (family === 4) return classOf(address, 'ipv4');
  const mapped = embeddedIpv4(address);
  if (mapped !== null && classOf(mapped, 'ipv4') === 'never') return 'never';
  return classOf(address, 'ipv6');
}

function classOf(address: string, family: 'ipv4' | 'ipv6'): AddressClass {
  if (never[family].check(address, family)) return 'never';
  return notPublic[family].check(address, family) ? 'private' : 'public';
}

/** The IPv4 address in an IPv4-mapped, IPv4-compatible, NAT64 or 6to4 one; null: none. */
function embeddedIpv4(address: string): string | null {
  const groups = groupsOf(address);
  if (groups === null) return null;
  const [first = 0, second = 0, third = 0] = groups;
  if (first === 0x2002) return dotted(second, third);
  const zeros = groups.slice(0, 5).every((group) => group === 0);
  const nat64 = first === 0x64 && second === 0xff9b;
  return zeros || nat64 ? dotted(groups[6] ?? 0, groups[7] ?? 0) : null;
}

function groupsOf(address: string): readonly number[] | null {
  let canonical: string;
  try {
    // The URL parser's spelling: hexadecimal groups only.
    canonical = new URL(`http://[${address}]/`).hostname.slice(1, -1);
  } catch {
    return null;
  }
  const [head = '', tail] = canonical.split('::');
  const parse = (part: string): number[] =>
    part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16));
  if (tail === undefined) return parse(head);
  const [before, after] = [parse(head), parse(tail)];
  return [...before, ...Array.from({ length: 8 - before.length - after.length }, () => 0), ...after];
}

function dotted(high: number, low: number): string {
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.');
}

function blockList(
  family: 'ipv4' | 'ipv6',
  ranges: readonly (readonly [address: string, prefix: number])[],
): BlockList {
  const list = new BlockList();
  for (const [address, prefix] of ranges) list.addSubnet(address, prefix, family);
  return list;
}
