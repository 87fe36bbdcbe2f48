/** A registry with one image, made of this machine's static busybox, for those who know its password; over HTTP, on loopback. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const BUSYBOX = '/bin/busybox';
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';

export interface LabRegistry {
  /** Of its image, as nodes name it. */
  readonly image: string;
  readonly auth: { readonly username: string; readonly password: string };
  close(): Promise<void>;
}

/** Null: there is no busybox to make an image of. */
export async function startRegistry(): Promise<LabRegistry | null> {
  if (!existsSync(BUSYBOX)) return null;
  const auth = { username: 'reader', password: 'secret' };
  const expected = `Basic ${Buffer.from(`${auth.username}:${auth.password}`).toString('base64')}`;
  const layer = layerOf();
  const config = Buffer.from(
    JSON.stringify({
      architecture: process.arch === 'x64' ? 'amd64' : process.arch,
      os: 'linux',
      config: { Env: ['PATH=/bin', 'FROM_REGISTRY=yes'] },
      rootfs: { type: 'layers', diff_ids: [digestOf(layer)] },
    }),
  );
  const describe = (mediaType: string, bytes: Buffer): object => ({
    mediaType,
    digest: digestOf(bytes),
    size: bytes.length,
  });
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: MANIFEST,
      config: describe('application/vnd.oci.image.config.v1+json', config),
      layers: [describe('application/vnd.oci.image.layer.v1.tar', layer)],
    }),
  );
  const blobs = new Map([config, layer, manifest].map((bytes) => [digestOf(bytes), bytes]));
  const server = createServer(({ url = '', headers, method }, response) => {
    if (headers.authorization !== expected) {
      response.writeHead(401, { 'WWW-Authenticate': 'Basic realm="lab"', 'Content-Type': 'application/json' });
      response.end(JSON.stringify({ errors: [{ code: 'UNAUTHORIZED', message: 'authentication required' }] }));
      return;
    }
    const [, kind, name = ''] = /^\/v2\/private\/tool\/(manifests|blobs)\/(.+)$/.exec(url) ?? [];
    const bytes = kind === 'manifests' && name === '1' ? manifest : blobs.get(name);
    if (bytes === undefined && url !== '/v2/') {
      response.writeHead(404, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify({ errors: [{ code: 'MANIFEST_UNKNOWN', message: 'manifest unknown' }] }));
      return;
    }
    response.writeHead(200, {
      'Content-Type': bytes === manifest ? MANIFEST : 'application/octet-stream',
      'Content-Length': bytes?.length ?? 0,
      ...(bytes === undefined ? {} : { 'Docker-Content-Digest': digestOf(bytes) }),
    });
    response.end(method === 'HEAD' ? undefined : bytes);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    image: `127.0.0.1:${(server.address() as AddressInfo).port}/private/tool:1`,
    auth,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

function layerOf(): Buffer {
  const root = mkdtempSync(join(tmpdir(), 'penstock-registry-'));
  try {
    mkdirSync(join(root, 'bin'));
    mkdirSync(join(root, 'tmp'));
    copyFileSync(BUSYBOX, join(root, 'bin/busybox'));
    for (const applet of execFileSync(BUSYBOX, ['--list'], { encoding: 'utf8' }).trim().split('\n'))
      if (applet !== 'busybox') symlinkSync('busybox', join(root, 'bin', applet));
    execFileSync('chmod', ['-R', 'a+rX', root]);
    execFileSync('tar', ['--owner=0', '--group=0', '--numeric-owner', '-C', root, '-cf', `${root}.tar`, '.']);
    return readFileSync(`${root}.tar`);
  } finally {
    rmSync(root, { recursive: true, force: true });
    rmSync(`${root}.tar`, { force: true });
  }
}

function digestOf(bytes: Buffer): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}
