/**
 * Which user of this machine sends a request over loopback, by the kernel's table of connections (Linux). A stage reaches the
 * server of its own machine, and is not to read with the server's rights what it may not read itself.
 */
import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';

export interface UidRange {
  readonly first: number;
  readonly last: number;
}

const TABLES = ['/proc/net/tcp', '/proc/net/tcp6'] as const;
const ESTABLISHED = '01';
const TABLE_BYTES_MAX = 64 * 1024 * 1024;

/** True where the sender has one of these users, and where it cannot be told who it is: it has hung up, say. */
export async function maySendAs(uids: UidRange, socket: Pick<Socket, 'remotePort' | 'localPort'>): Promise<boolean> {
  const { remotePort, localPort } = socket;
  if (remotePort === undefined || localPort === undefined) return true;
  const tables = await Promise.all(TABLES.map((path) => readFile(path, 'latin1').catch(() => '')));
  const senders = tables.flatMap((table) => sendersIn(table.slice(0, TABLE_BYTES_MAX), remotePort, localPort));
  // A connection that its sender has left belongs to nobody, which the table writes as root.
  if (!senders.some(({ state }) => state === ESTABLISHED)) return true;
  return senders.some(({ state, uid }) => state !== ESTABLISHED || (uid >= uids.first && uid <= uids.last));
}

/** The ends of connections from one port to the other, whatever their addresses are: all of them are on this machine. */
export function sendersIn(table: string, from: number, to: number): { readonly state: string; readonly uid: number }[] {
  const [fromPort, toPort] = [from, to].map((port) => port.toString(16).toUpperCase().padStart(4, '0'));
  const found: { state: string; uid: number }[] = [];
  for (const line of table.split('\n')) {
    const [, local = '', remote = '', state = '', , , , uid] = line.trim().split(/\s+/u);
    if (local.endsWith(`:${fromPort}`) && remote.endsWith(`:${toPort}`)) found.push({ state, uid: Number(uid) });
  }
  return found;
}
