/** Answers that no server of the tests gives; `s3-store.long.test.ts` has the suite of all stores on a real one. */
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, vi } from 'vitest';
import { ObjectsFull, ObjectsUnavailable } from '../src/errors.ts';
import { openS3Store } from '../src/s3/s3-store.ts';

vi.stubEnv('AWS_ACCESS_KEY_ID', 'test');
vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'test');
// No file of the user's own counts.
vi.stubEnv('AWS_CONFIG_FILE', '/dev/null');
vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', '/dev/null');

const MIB = 1024 * 1024;
describe('an S3 server that does not take an object', () => {
  it.each([
    [507, 'XMinioStorageFull', true],
    [400, 'XMinioAdminBucketQuotaExceeded', true],
    [403, 'QuotaExceeded', true],
    [403, 'AccessDenied', false],
  ])('and says %i %s is full: %s', async (status, code, full) => {
    const refusing = createServer((request, response) => {
      request.resume();
      if (request.method === 'HEAD') response.end();
      else request.once('end', () => response.writeHead(status).end(`<Error><Code>${code}</Code></Error>`));
    });
    await new Promise<void>((resolve) => refusing.listen(0, '127.0.0.1', resolve));
    try {
      const { port } = refusing.address() as AddressInfo;
      const endpoint = `http://127.0.0.1:${port}`;
      const store = await openS3Store({ kind: 's3', bucket: 'b', prefix: '', endpoint, region: 'us-east-1' });
      const content = Buffer.from('content');
      const bytes = (async function* given() {
        yield content;
      })();
      const sha256 = createHash('sha256').update(content).digest('hex');
      const put = store.put('key', bytes, { sha256, bytesMax: content.length }).catch((error: unknown) => error);
      expect(await put).toBeInstanceOf(ObjectsUnavailable);
      expect((await put) instanceof ObjectsFull).toBe(full);
    } finally {
      refusing.closeAllConnections();
      refusing.close();
    }
  });

  it('says why also of an object that goes in parts, and ends its source', async () => {
    const refusing = createServer((request, response) => {
      request.resume();
      if (request.method === 'HEAD') response.end();
      else request.once('end', () => response.writeHead(403).end('<Error><Code>QuotaExceeded</Code></Error>'));
    });
    await new Promise<void>((resolve) => refusing.listen(0, '127.0.0.1', resolve));
    try {
      const { port } = refusing.address() as AddressInfo;
      const endpoint = `http://127.0.0.1:${port}`;
      const store = await openS3Store({ kind: 's3', bucket: 'b', prefix: '', endpoint, region: 'us-east-1' });
      let isEnded = false;
      const bytes = (async function* given() {
        try {
          for (let at = 0; at < 64; at += 1) yield Buffer.alloc(MIB, at);
        } finally {
          isEnded = true;
        }
      })();
      const put = store
        .put('key', bytes, { sha256: 'a'.repeat(64), bytesMax: 64 * MIB })
        .catch((error: unknown) => error);
      expect(await put).toBeInstanceOf(ObjectsFull);
      expect(String(await put)).toContain('QuotaExceeded');
      await expect.poll(() => isEnded).toBe(true);
    } finally {
      refusing.closeAllConnections();
      refusing.close();
    }
  });
});
