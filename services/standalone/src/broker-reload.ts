/** Has the embedded broker read its configuration again, and waits until it has. */
import { connectBus, connectionOf } from '@penstock/bus';

/** Of one reload: 300 accounts take some two seconds on a busy machine. */
const RELOAD_MS_MAX = 20_000;

/** What an account imports that is new with one reading reaches it only with the next (seen with nats-server 2.15.1). */
const ROUNDS = 2;

interface ReloadAnswer {
  readonly error?: { readonly description?: string };
}

/** `address`: of a user of the system account. Rejects with the broker's reason, and then it goes on with what it had. */
export async function readAgain(
  address: Pick<Parameters<typeof connectBus>[0], 'servers' | 'user' | 'pass'>,
): Promise<void> {
  const bus = await connectBus({ ...address, name: 'serve-system', connectTimeoutMs: RELOAD_MS_MAX });
  try {
    const connection = connectionOf(bus);
    const subject = `$SYS.REQ.SERVER.${connection.info?.server_id ?? ''}.RELOAD`;
    for (let round = 1; round <= ROUNDS; round += 1) {
      const answer = await connection.request(subject, '', { timeout: RELOAD_MS_MAX });
      const { error } = answer.json<ReloadAnswer>();
      if (error !== undefined)
        throw new Error(`the broker did not take its configuration: ${error.description ?? 'it says no reason'}`);
    }
  } finally {
    await bus.close(0);
  }
}
