/** What a server has to be, asked once when the store is opened. */
import type { Call, ReadConcern } from './call.ts';
import { FitProblem } from './failures.ts';

/** MongoDB 7.0: the oldest release that its makers still mend, and the oldest that this adapter is meant for. */
const WIRE_VERSION_MIN = 21;
const RELEASES: readonly (readonly [wireVersion: number, release: string])[] = [
  [17, '6.0'],
  [13, '5.0'],
  [9, '4.4'],
  [8, '4.2'],
];

/**
 * The read concern under which a settled write is seen by every read begun later (docs/adr/0008-mongodb.md):
 * - of a replica set `linearizable`: a primary that has been deposed without knowing it does not answer;
 * - of a sharded cluster `majority`, the strongest it gives to lists over several shards;
 * - of a single server none: it has all that it has acknowledged.
 */
export async function checkServer(call: Call): Promise<ReadConcern> {
  const hello = await call.retry(() => call.manage({ hello: 1 }));
  const wireVersion = Number(hello['maxWireVersion'] ?? 0);
  if (wireVersion < WIRE_VERSION_MIN) {
    const release = RELEASES.find(([version]) => wireVersion >= version)?.[1];
    throw new FitProblem(
      `the server is MongoDB ${release ?? `of wire version ${wireVersion}`}; Penstock needs MongoDB 7.0 or newer: upgrade the server, or name another one in SERVICE_STORE_URL`,
    );
  }
  if (hello['msg'] === 'isdbgrid') return { level: 'majority' };
  return typeof hello['setName'] === 'string' ? { level: 'linearizable' } : null;
}
