/**
 * The broker from its official release archive. The archive must match the digest in pins.json and the release's own
 * SHA256SUMS. An archive without a pinned digest is not taken: what came from one place cannot vouch for itself.
 */
import { basename } from 'node:path';
import { createHash } from 'node:crypto';
import { extract } from './archive.js';
import { download } from './download.js';
import { SourceFailed } from './errors.js';

/** @returns the bytes of the binary. */
export async function brokerFromRelease({ pins, platform, env, limits }) {
  const base = (env.SERVICE_BROKER_RELEASE_URL || pins.release.url).replace(/\/+$/, '');
  const file = pins.release.files[platform];
  if (!file) throw new SourceFailed(`the release has no archive for ${platform}`);
  if (!file.sha256) throw new SourceFailed(`no checksum is pinned of ${file.name}`);
  const folder = `${base}/v${pins.version}`;
  const options = { env };
  const sums = await download(`${folder}/SHA256SUMS`, limits, options);
  const line = sums.bytes
    .toString('utf8')
    .split('\n')
    .map((text) => text.trim().split(/\s+\*?/))
    .find(([, name]) => name === file.name);
  if (!line) throw new SourceFailed(`the release's SHA256SUMS does not list ${file.name}`);
  if (file.sha256 !== line[0])
    throw new SourceFailed(`the release's SHA256SUMS disagrees with the pinned checksum of ${file.name}`);
  const archive = await download(`${folder}/${file.name}`, limits, options);
  assertDigest(file.name, archive.bytes, line[0]);
  return extract(file.name, archive.bytes, isServerBinary);
}

export const isServerBinary = (path) => /^nats-server(\.exe)?$/.test(basename(path));

export function assertDigest(name, bytes, expected) {
  const actual = sha256(bytes);
  if (actual !== expected)
    throw new SourceFailed(
      `${name} has the checksum ${actual.slice(0, 12)}…, not the expected ${expected.slice(0, 12)}…`,
    );
}

export const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');
