import type { Bus } from '@penstock/bus';
import { expect, it } from 'vitest';
import { IncomingUploads } from '../src/artifacts/incoming.ts';

it('an upload that nobody can send to, for the bus is closed, ends as any that nobody sends to', async () => {
  const incoming = new IncomingUploads();
  const respond = (): never => {
    throw new Error('the bus is closed');
  };
  const bus = { respond } as unknown as Bus;
  let isOver = false;
  const store = async (bytes: AsyncIterable<Uint8Array>): Promise<void> => {
    try {
      await Array.fromAsync(bytes);
    } finally {
      isOver = true;
    }
  };
  const whose = { runner: 'r1', tenant: 'service' };
  expect(() => incoming.listen(bus, whose, { sizeBytes: 10 }, store)).toThrow('the bus is closed');
  incoming.close();
  await expect.poll(() => isOver).toBe(true);
});
