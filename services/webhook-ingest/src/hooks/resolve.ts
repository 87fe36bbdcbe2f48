/**
 * From a host to the one address that is connected to. It is resolved once and judged, and the connection goes to that very address: a name
 * that says something else a moment later changes nothing.
 */
import { lookup, Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { ServerMode } from '@penstock/config';
import { classOfAddress } from '@penstock/git';
import type { Refusal } from './address.ts';

const RESOLVE_MS_MAX = 3_000;

export interface Names {
  /** All addresses of a name; none where it has none. */
  addressesOf(name: string): Promise<readonly string[]>;
}

/** Asks name servers itself: the system's look-up has few threads, and a slow name server of one tenant would hold up the others. */
export function publicNames(): Names {
  return {
    async addressesOf(name) {
      const resolver = new Resolver({ timeout: RESOLVE_MS_MAX, tries: 1 });
      const found = await Promise.all([
        resolver.resolve4(name).catch(() => []),
        resolver.resolve6(name).catch(() => []),
      ]);
      return found.flat();
    },
  };
}

/** As this machine knows them, by its own file too. */
export function machineNames(): Names {
  return {
    addressesOf: async (name) => {
      const found = await lookup(name, { all: true }).catch(() => []);
      return found.map(({ address }) => address);
    },
  };
}

/** In production mode one address that is not public refuses the name: whoever mixes them means no good. */
export async function resolveHost(host: string, mode: ServerMode, names: Names): Promise<string | Refusal> {
  const addresses = isIP(host) === 0 ? await names.addressesOf(host) : [host];
  const [first] = addresses;
  if (first === undefined) return { refusal: 'the name has no address' };
  if (mode === 'development') return first;
  const own = ownAddresses();
  const isRefused = (address: string): boolean => classOfAddress(address) !== 'public' || own.has(address);
  return addresses.some(isRefused) ? { refusal: 'the name leads to an address that is not public' } : first;
}

function ownAddresses(): ReadonlySet<string> {
  return new Set(Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address)));
}
