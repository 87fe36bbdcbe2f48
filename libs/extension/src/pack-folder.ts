/**
 * Makes a package of a folder, always the same bytes of the same files: entries sorted by their paths' bytes, without
 * owners and times, with one of two modes; and gzip without compression, for what compression makes of the same bytes
 * differs between processors and versions of zlib. Extensions are scripts: what is lost is kilobytes.
 */
import { lstat, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { pack } from 'tar-stream';
import { EntryRules } from './entry-rules.ts';
import { PackageRefused } from './errors.ts';
import { inspectPackage, type PackageInfo } from './inspect-package.ts';
import { PACKAGE_LIMITS } from './package-limits.ts';
import { printableName } from './printable-name.ts';

export interface PackedFolder extends PackageInfo {
  readonly bytes: Uint8Array;
}

/** Never part of a package: what belongs to the one who writes it. */
const LEFT_OUT: ReadonlySet<string> = new Set(['.git', '.hg', '.svn', '.DS_Store', 'node_modules', '.penstock']);
/** A deflate block that is stored as it is. */
const STORED_BLOCK_MAX = 65_535;
const GZIP_HEADER = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);

/** Throws PackageRefused for a folder that no sound package can be made of: links, unreadable names, no or a bad manifest. */
export async function packFolder(folder: string): Promise<PackedFolder> {
  const tar = pack();
  const chunks: Buffer[] = [];
  const rules = new EntryRules();
  let size = 0;
  for (const path of await filesOf(folder)) {
    const stat = await lstat(join(folder, path));
    const kind = stat.isFile() ? 'file' : stat.isSymbolicLink() ? 'symlink' : 'fifo';
    rules.accept({ path, kind, mode: stat.mode & 0o7777 });
    size += stat.size;
    if (size > PACKAGE_LIMITS.bytesMax)
      throw new PackageRefused('bytes', `the package is larger than ${PACKAGE_LIMITS.bytesMax / 1024 / 1024} MiB`);
    const mode = (stat.mode & 0o100) === 0 ? 0o644 : 0o755;
    tar.entry(
      { name: path, mode, uid: 0, gid: 0, uname: '', gname: '', mtime: new Date(0), type: 'file' },
      await readFile(join(folder, path)),
    );
  }
  tar.finalize();
  for await (const chunk of tar) chunks.push(Buffer.from(chunk as Uint8Array));
  const bytes = storedGzip(Buffer.concat(chunks));
  return { ...(await inspectPackage(once(bytes))), bytes };
}

/** A `name` in the packed folder, relative with `/`, sorted by bytes. Folders without files are not kept. */
async function filesOf(folder: string): Promise<string[]> {
  const found: string[] = [];
  const visit = async (path: string, depth: number): Promise<void> => {
    if (depth > PACKAGE_LIMITS.depthMax)
      throw new PackageRefused(
        'depth',
        `the folder is more than ${PACKAGE_LIMITS.depthMax} levels deep: ${printableName(path)}`,
      );
    for (const entry of await readdir(join(folder, path), { withFileTypes: true })) {
      if (LEFT_OUT.has(entry.name)) continue;
      const inner = path === '' ? entry.name : `${path}/${entry.name}`;
      if (entry.isDirectory()) await visit(inner, depth + 1);
      else found.push(inner);
      if (found.length > PACKAGE_LIMITS.filesMax)
        throw new PackageRefused(
          'files',
          `the folder holds more than ${PACKAGE_LIMITS.filesMax.toLocaleString('en')} files`,
        );
    }
  };
  await visit('', 0);
  return found.toSorted((left, right) => Buffer.compare(Buffer.from(left), Buffer.from(right)));
}

function storedGzip(content: Buffer): Buffer {
  const parts: Buffer[] = [GZIP_HEADER];
  for (let from = 0; from === 0 || from < content.length; from += STORED_BLOCK_MAX) {
    const block = content.subarray(from, from + STORED_BLOCK_MAX);
    const head = Buffer.alloc(5);
    head[0] = from + STORED_BLOCK_MAX >= content.length ? 1 : 0;
    head.writeUInt16LE(block.length, 1);
    head.writeUInt16LE(block.length ^ 0xffff, 3);
    parts.push(head, block);
  }
  const tail = Buffer.alloc(8);
  tail.writeUInt32LE(crc32(content), 0);
  tail.writeUInt32LE(content.length % 2 ** 32, 4);
  return Buffer.concat([...parts, tail]);
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
