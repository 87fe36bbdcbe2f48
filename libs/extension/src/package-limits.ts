/** The bounds of a package, each checked while it is read and before anything of it is kept. */
import { PACKAGE_BYTES_MAX } from './registry-messages.ts';

export const PACKAGE_LIMITS = {
  bytesMax: PACKAGE_BYTES_MAX,
  /** Of all entries with their headers: what a runner's disk and time may be made to take. */
  unpackedBytesMax: 200 * 1024 * 1024,
  /** Unpacked bytes for each packed one. Texts compress 3 to 10 times, a file of zeros 1,000 times. */
  ratioMax: 100,
  /** Below this the ratio says nothing: an archive is padded with zeros. */
  ratioFreeBytes: 1024 * 1024,
  filesMax: 10_000,
  depthMax: 32,
  pathBytesMax: 1_024,
  nameBytesMax: 255,
  /** Of readme and changelog, which stand in the registry's store. */
  readmeBytesMax: 256 * 1024,
  changelogBytesMax: 64 * 1024,
} as const;

export const MANIFEST_NAME = 'extension.yaml';
