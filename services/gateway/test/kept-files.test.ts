/** Lists of kept files, which a gateway reads and remembers. */
import { createHash } from 'node:crypto';
import { encodeManifest } from '@penstock/artifacts';
import { connectBus, type Bus } from '@penstock/bus';
import { KeptFiles } from '@penstock/gateway/testing';
import { answerCalls } from '@penstock/service';
import { startTestBroker, type TestBroker } from '@penstock/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runIdFor } from './harness.ts';

const FILES = 10_000;
const sha256 = (bytes: Uint8Array | string): string => createHash('sha256').update(bytes).digest('hex');

let broker: TestBroker;
let bus: Bus;
/** By their hash. */
const lists = new Map<string, Buffer>();
let reads = 0;

beforeAll(async () => {
  broker = await startTestBroker();
  bus = await connectBus({ servers: broker.url, name: 'gateway' });
  answerCalls(bus, 'registry', {
    'artifact.get': (request: { readonly sha256: string; readonly offset: number }) => {
      const bytes = lists.get(request.sha256) ?? Buffer.alloc(0);
      if (request.offset === 0) reads += 1;
      const data = bytes.subarray(request.offset, request.offset + 500_000);
      return { data: data.toString('base64'), sizeBytes: bytes.length };
    },
  });
});
afterAll(async () => {
  await bus.close();
  await broker.stop();
});

function listed(name: string) {
  const file = { sizeBytes: 1, sha256: sha256('x'), executable: false };
  const bytes = encodeManifest(Array.from({ length: FILES }, (_, index) => ({ ...file, path: `${name}/${index}` })));
  lists.set(sha256(bytes), bytes);
  return { manifest: sha256(bytes), files: FILES, bytes: FILES, expiresAt: Infinity };
}

it('say that they are damaged where a machine has named what is no list', async () => {
  const kept = new KeptFiles(bus, () => 0);
  for (const text of ['no list', '{"version":1,"files":[{"path":"../up"}]}']) {
    lists.set(sha256(text), Buffer.from(text));
    const artifacts = { manifest: sha256(text), files: 1, bytes: 1, expiresAt: Infinity };
    await expect(kept.of({ id: runIdFor() }, artifacts)).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      message: expect.stringContaining('damaged'),
    });
  }
});

it('are remembered, however many ask for one that is being read', async () => {
  const kept = new KeptFiles(bus, () => 0);
  const run = { id: runIdFor() };
  const many = listed('many');
  const answers = await Promise.all(Array.from({ length: 8 }, () => kept.of(run, many)));
  expect(answers.map((files) => files?.length)).toEqual(Array.from({ length: 8 }, () => FILES));
  const other = listed('other');
  await kept.of(run, other);
  reads = 0;
  await kept.of(run, other);
  await kept.of(run, many);
  expect(reads).toBe(0);
});
