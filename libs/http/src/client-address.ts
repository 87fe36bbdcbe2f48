/**
 * Which client a request comes from. It is the peer of the socket, except where that is a proxy which the operator trusts:
 * then it is the rightmost address of `X-Forwarded-For` that is none of the trusted ones. Whatever stands left of it was
 * written by the client itself.
 */
import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net';

export class TrustedProxies {
  readonly #list = new BlockList();
  readonly #none: boolean;

  /** Entries are addresses (`10.0.0.1`, `::1`) and CIDR ranges (`10.0.0.0/8`). Throws a RangeError that names what is neither. */
  constructor(entries: readonly string[] = []) {
    this.#none = entries.length === 0;
    for (const entry of entries) {
      const [address = '', length, ...rest] = entry.trim().split('/');
      const family = isIPv4(address) ? 'ipv4' : isIPv6(address) ? 'ipv6' : null;
      const bitsMax = family === 'ipv4' ? 32 : 128;
      const bits = length === undefined ? bitsMax : /^\d{1,3}$/u.test(length) ? Number(length) : Number.NaN;
      if (family === null || rest.length > 0 || !(bits <= bitsMax)) {
        throw new RangeError(
          `'${entry}' is neither an address nor a range of addresses: write 10.0.0.1, 10.0.0.0/8 or fd00::/8`,
        );
      }
      this.#list.addSubnet(address, bits, family);
    }
  }

  #trusts(address: string): boolean {
    if (this.#none) return false;
    const family = isIP(address);
    return family !== 0 && this.#list.check(address, family === 4 ? 'ipv4' : 'ipv6');
  }

  /** Of the address at the other end of a socket. */
  trustsPeer(peer: string): boolean {
    return this.#trusts(plainAddress(peer) ?? '');
  }

  /** `forwardedFor`: all `X-Forwarded-For` headers, joined by commas in their order. */
  clientOf(peer: string, forwardedFor: string | undefined): string {
    let client = plainAddress(peer) ?? '';
    if (forwardedFor === undefined || !this.#trusts(client)) return client;
    // From the right, as far as the trust goes: a header of 16 KiB costs no more than its trusted end.
    let end = forwardedFor.length;
    while (end >= 0 && this.#trusts(client)) {
      const comma = end === 0 ? -1 : forwardedFor.lastIndexOf(',', end - 1);
      const before = plainAddress(forwardedFor.slice(comma + 1, end));
      // What is no address ("unknown", a name) says nothing: the proxy that wrote it is the last that is known.
      if (before === null) return client;
      client = before;
      end = comma;
    }
    return client;
  }
}

/** Without port, brackets and zone, IPv4 inside IPv6 as IPv4; null: no address. */
function plainAddress(text: string): string | null {
  const trimmed = text.trim();
  const bracketed = /^\[([^\]]*)\](?::\d{1,5})?$/u.exec(trimmed)?.[1];
  const bare = bracketed ?? /^([\d.]+):\d{1,5}$/u.exec(trimmed)?.[1] ?? trimmed;
  const zone = bare.indexOf('%');
  const address = zone < 0 ? bare : bare.slice(0, zone);
  if (isIPv4(address)) return address;
  if (!isIPv6(address)) return null;
  const groups = groupsOf(address);
  if (groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff) {
    const [high = 0, low = 0] = groups.slice(6);
    return `${high >> 8}.${high & 0xff}.${low >> 8}.${low & 0xff}`;
  }
  return address;
}

/**
 * What counts as one client: an IPv4 address, or the /64 of an IPv6 address, which is what one subscriber is given and can
 * move about in as it likes. Takes what `clientOf` gives.
 */
export function clientKeyOf(address: string): string {
  if (!address.includes(':')) return address;
  return `${groupsOf(address)
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(':')}::/64`;
}

/** The same of the address at the other end of a socket: one that listens on all addresses of both kinds has IPv4 inside IPv6 there. */
export function clientKeyOfPeer(peer: string): string {
  return clientKeyOf(plainAddress(peer) ?? '');
}

/** The eight numbers of a well-formed IPv6 address. */
function groupsOf(address: string): number[] {
  const withoutDots = address.replace(
    /(\d+)\.(\d+)\.(\d+)\.(\d+)$/u,
    (_all, a: string, b: string, c: string, d: string) =>
      `${(Number(a) * 256 + Number(b)).toString(16)}:${(Number(c) * 256 + Number(d)).toString(16)}`,
  );
  const [head = '', tail] = withoutDots.split('::');
  const numbers = (part: string): number[] =>
    part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16));
  const first = numbers(head);
  if (tail === undefined) return first;
  const last = numbers(tail);
  return [...first, ...Array.from({ length: 8 - first.length - last.length }, () => 0), ...last];
}
