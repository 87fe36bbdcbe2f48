/** The bounds of a package, each checked while it is read and before anything of it is kept. */
import { PACKAGE_BYTES_MAX } from './registry-messages.ts';

export const PACKAGE_LIMITS = {
  bytesMax: PACKAGE_BYTES_MAX,
  /** Bounds all entries with their headers, and so the disk and the time that a package can cost a runner. */
  unpackedBytesMax: 200 * 1024 * 1024,
  /** Unpacked bytes for each packed one. Texts compress 3 to 10 times, a file of zeros 1,000 times. */
  ratioMax: 100,
  /** Below this the ratio says nothing: an archive is padded with zeros. */
  ratioFreeBytes: 1024 * 1024,
  filesMax: 10_000,
  depthMax: 32,
  pathBytesMax: 1_024,
  nameBytesMax: 255,
  /** Bounds readme and changelog, which the registry keeps in its store. */
  readmeBytesMax: 256 * 1024,
  changelogBytesMax: 64 * 1024,
} as const;

export const MANIFEST_NAME = 'extension.yaml';
