/** On a server of the tests' own, which Go has to build first: minutes of a processor where it has built nothing yet. */
import { GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import type { S3Address } from '@penstock/config';
import { startTestS3Server } from '@penstock/testkit';
import { describe, expect, it, vi } from 'vitest';
import { ObjectsUnavailable } from '../src/errors.ts';
import { openS3Store } from '../src/s3/s3-store.ts';
import { objectStoreSuite } from './object-store-suite.ts';

vi.stubEnv('AWS_ACCESS_KEY_ID', 'test');
vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'test');
// No file of the user's own counts.
vi.stubEnv('AWS_CONFIG_FILE', '/dev/null');
vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', '/dev/null');

const MIB = 1024 * 1024;
const server = await startTestS3Server();

describe.skipIf(server === null)('S3', { timeout: 120_000 }, () => {
  const address: S3Address = {
    kind: 's3',
    bucket: server?.bucket ?? '',
    prefix: 'one/two/',
    endpoint: server?.endpoint,
    region: 'us-east-1',
  };
  const client = new S3Client({
    endpoint: server?.endpoint ?? 'http://127.0.0.1:1',
    region: 'us-east-1',
    forcePathStyle: true,
  });

  objectStoreSuite('S3', async () => ({
    unfinishedBytes: 20 * MIB,
    open: () => openS3Store(address),
    damage: async (key) => {
      const at = { Bucket: address.bucket, Key: address.prefix + key };
      const { Body: body } = await client.send(new GetObjectCommand(at));
      const bytes = Buffer.from((await body?.transformToByteArray()) ?? []);
      bytes.write('damaged', 1000);
      await client.send(new PutObjectCommand({ ...at, Body: bytes }));
    },
    remove: async () => {
      client.destroy();
      await server?.stop();
    },
  }));

  it('a bucket that is not there, and a server that is away, are unavailable', async () => {
    await expect(openS3Store({ ...address, bucket: 'other' })).rejects.toBeInstanceOf(ObjectsUnavailable);
    await expect(openS3Store({ ...address, endpoint: 'http://127.0.0.1:1' })).rejects.toBeInstanceOf(
      ObjectsUnavailable,
    );
  });
});
