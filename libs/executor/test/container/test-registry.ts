/** A registry of one image for tests, with the part of its protocol that a pull needs, behind a name and a password where it has them. */
import { createHash } from 'node:crypto';
import { createReadStream, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { once } from 'node:events';
import type { FoundEngine } from '../../src/container/find-engine.ts';
import { command } from '../../src/testing-containers/test-images.ts';

export interface TestRegistry {
  /** `host:port`, for the names of its images. */
  readonly address: string;
  /** How often the image was asked for, granted or not. */
  readonly asked: number;
  close(): Promise<void>;
}

/** `auth`: `name:password`. Serves `image` under any name, with the tag `1`. */
export async function startTestRegistry(engine: FoundEngine, image: string, auth?: string): Promise<TestRegistry> {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-registry-'));
  command(engine, ['save', '--format', 'docker-dir', '--output', join(folder, 'image'), image]);
  const manifest = readFileSync(join(folder, 'image/manifest.json'));
  const digest = `sha256:${createHash('sha256').update(manifest).digest('hex')}`;
  const wanted = auth === undefined ? undefined : `Basic ${Buffer.from(auth).toString('base64')}`;
  let asked = 0;
  const server: Server = createServer((request, response) => {
    const [, kind, name = ''] = /^\/v2\/[^?]*\/(manifests|blobs)\/([^/?]+)$/.exec(request.url ?? '') ?? [];
    if (kind === 'manifests') asked += 1;
    if (wanted !== undefined && request.headers.authorization !== wanted) {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="test"', 'content-type': 'application/json' });
      response.end('{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}');
      return;
    }
    const blob = join(folder, 'image', name.replace('sha256:', ''));
    if (request.url === '/v2/') response.end('{}');
    else if (kind === 'manifests' && (name === '1' || name === digest)) {
      response.writeHead(200, {
        'content-type': 'application/vnd.docker.distribution.manifest.v2+json',
        'docker-content-digest': digest,
      });
      response.end(manifest);
    } else if (kind === 'blobs' && /^sha256:[0-9a-f]{64}$/.test(name) && existsSync(blob))
      createReadStream(blob).pipe(response);
    else {
      response.writeHead(404, { 'content-type': 'application/json' });
      response.end('{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}');
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    get asked() {
      return asked;
    },
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
