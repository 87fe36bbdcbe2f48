/** A machine that a test plays: attached by its token as `penstock runner` does it, and from then on whatever the test says at the broker. */
import { connectBus, inboxPrefixOf, newKeySeed, publicKeyOf, runnerUserName, type Bus } from '@penstock/bus';
import type { AttachAnswer } from '@penstock/identity';

const PATIENT_MS = 90_000;

export interface DialledMachine {
  readonly runner: string;
  readonly bus: Bus;
}

/** `server` is its address. Whoever calls it closes the bus. */
export async function dialMachine(server: string, token: string): Promise<DialledMachine> {
  const seed = newKeySeed();
  const attached = await fetch(`${server}/runners/attach`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ public_key: publicKeyOf(seed), name: 'dialled' }),
  });
  const { runner, ticket } = (await attached.json()) as AttachAnswer;
  const address = `${server.replace('http', 'ws')}/runners/socket`;
  const options = { headers: { Authorization: `Bearer ${ticket}` } } as unknown as string[];
  const bus = await connectBus({
    servers: address,
    name: runner,
    seed,
    inboxPrefix: inboxPrefixOf(runnerUserName(runner)),
    openSocket: () => new WebSocket(address, options),
    connectTimeoutMs: PATIENT_MS,
  });
  return { runner, bus };
}
