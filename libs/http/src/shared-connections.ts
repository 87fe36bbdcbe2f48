/**
 * Connections, of which a server has a bounded number: each holds a place whether anything is asked by it or not.
 *
 *  CONNECTIONS-1 A client has a quarter of the places that are free at most, and a few in any case: whoever opens as many as can be, and keeps them,
 *     leaves some for others. A proxy that is trusted, and this machine, have as many as there are: they stand for many clients.
 */
import type { Server } from 'node:net';
import { FairRoom } from '@penstock/async';
import { clientKeyOfPeer, TrustedProxies } from './client-address.ts';

/** What a browser opens, and some more behind the same address. */
const OWN = 16;
const THIS_MACHINE = ['127.0.0.0/8', '::1'];

/** Of as many as the whole server may have. `trusts`: who has a share of none. */
export function shareConnections(server: Server, max: number, trusts: (peer: string) => boolean): void {
  server.maxConnections = max;
  const places = new FairRoom({ shared: max, own: Math.min(OWN, max) });
  server.on('connection', (socket) => {
    const { remoteAddress: peer = '' } = socket;
    if (trusts(peer)) return;
    const who = clientKeyOfPeer(peer);
    if (places.take(who, 1)) socket.once('close', () => places.giveBack(who, 1));
    else socket.destroy();
  });
}

/** Throws a RangeError on an entry that is no address. */
export function manyClientsAt(trustProxy: readonly string[]): (peer: string) => boolean {
  const peers = new TrustedProxies([...trustProxy, ...THIS_MACHINE]);
  return (peer) => peers.trustsPeer(peer);
}
