/**
 * Reads a package as a stream: its hash, and each of its entries once it has passed every rule. All bounds are checked
 * while the bytes come, so a bomb ends at the bound and not at its end. Owns no file.
 */
import { createHash } from 'node:crypto';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { extract, type Header } from 'tar-stream';
import { EntryRules } from './entry-rules.ts';
import { PackageRefused } from './errors.ts';
import { PACKAGE_LIMITS } from './package-limits.ts';

export interface PackageEntry {
  /** Within the package, with `/` between its parts. */
  readonly path: string;
  readonly isFolder: boolean;
  /** The owner may execute it. */
  readonly isExecutable: boolean;
  readonly size: number;
  readonly chunks: AsyncIterable<Uint8Array>;
}

export interface PackageFigures {
  /** SHA-256 of the package's bytes, lower-case hex. */
  readonly hash: string;
  readonly sizeBytes: number;
  readonly unpackedBytes: number;
  readonly files: number;
}

/** Calls `visit` with each entry in order; what it leaves unread is passed over. Throws PackageRefused, and what the stream or `visit` throws. */
export async function readPackage(
  bytes: AsyncIterable<Uint8Array>,
  visit: (entry: PackageEntry) => Promise<void>,
): Promise<PackageFigures> {
  const digest = createHash('sha256');
  let packed = 0;
  let unpacked = 0;
  let sourceError: unknown;
  async function* measurePacked(): AsyncGenerator<Uint8Array> {
    try {
      for await (const chunk of bytes) {
        packed += chunk.length;
        if (packed > PACKAGE_LIMITS.bytesMax)
          throw new PackageRefused('bytes', `the package is larger than ${PACKAGE_LIMITS.bytesMax / 1024 / 1024} MiB`);
        digest.update(chunk);
        yield chunk;
      }
    } catch (error) {
      sourceError ??= error;
      throw error;
    }
  }
  async function* measureUnpacked(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of source) {
      unpacked += chunk.length;
      if (unpacked > PACKAGE_LIMITS.unpackedBytesMax)
        throw new PackageRefused(
          'unpacked_bytes',
          `the package unpacks to more than ${PACKAGE_LIMITS.unpackedBytesMax / 1024 / 1024} MiB`,
        );
      if (unpacked > PACKAGE_LIMITS.ratioFreeBytes && unpacked > PACKAGE_LIMITS.ratioMax * packed)
        throw new PackageRefused('ratio', `the package unpacks to more than ${PACKAGE_LIMITS.ratioMax} times its size`);
      yield chunk;
    }
  }
  const tar = extract();
  const flow = pipeline(measurePacked, createGunzip(), measureUnpacked, tar);
  // Told below, whichever of the two ends first.
  flow.catch(() => {});
  const rules = new EntryRules();
  let flowError: unknown;
  try {
    for await (const entry of tar) await visitEntry(entry, rules, visit);
  } catch (error) {
    flowError = error;
    tar.destroy();
  }
  const failure = await flow.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (flowError === undefined && failure === undefined)
    return { hash: digest.digest('hex'), sizeBytes: packed, unpackedBytes: unpacked, files: rules.files };
  throw reasonOf([flowError, failure], sourceError);
}

interface TarEntry {
  readonly header: Header;
  resume(): unknown;
}

async function visitEntry(
  entry: TarEntry,
  rules: EntryRules,
  visit: (entry: PackageEntry) => Promise<void>,
): Promise<void> {
  const { header } = entry;
  // A type that tar does not know is null.
  const path = rules.accept({
    path: header.name,
    kind: (header.type as string | null) ?? 'unknown',
    mode: header.mode,
  });
  if (path !== '')
    await visit({
      path,
      isFolder: header.type === 'directory',
      isExecutable: (header.mode & 0o100) !== 0,
      size: header.size,
      chunks: entry as unknown as AsyncIterable<Uint8Array>,
    });
  entry.resume();
}

/** Picks the error that says most where one cause has made several. */
function reasonOf(errors: readonly unknown[], sourceError: unknown): unknown {
  const refusal = errors.find((error) => error instanceof PackageRefused);
  if (refusal !== undefined) return refusal;
  if (sourceError !== undefined) return sourceError;
  const cause = errors.find((error) => isFormatError(error));
  if (cause !== undefined) return new PackageRefused('format', 'the package is not a tar.gz, or is damaged', { cause });
  return (
    errors.find((error) => error !== undefined && !isPremature(error)) ??
    new PackageRefused('format', 'the package is cut off')
  );
}

function isFormatError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = 'code' in error ? String(error.code) : '';
  return (
    code.startsWith('Z_') ||
    /invalid tar header|header exceeds|invalid header|unexpected end of data/i.test(error.message)
  );
}

function isPremature(error: unknown): boolean {
  return (
    error instanceof Error &&
    'code' in error &&
    (error.code === 'ERR_STREAM_PREMATURE_CLOSE' ||
      error.code === 'STREAM_DESTROYED' ||
      error.code === 'PREMATURE_CLOSE')
  );
}
