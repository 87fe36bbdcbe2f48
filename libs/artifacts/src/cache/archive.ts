/**
 * The archive of a cache: blocks of zstd, each with its length in front, that hold records one behind the other; a record is a
 * head (JSON, its length in front) and the content of a file. It is read as it comes, in bounded memory, whoever made it.
 *
 *  ARCHIVE-1 A path is one of a kept file's (MANIFEST-1): below the root that its head names, and through no link of the archive.
 *  ARCHIVE-2 A link leads to a place below its root: its target begins with as many `..` as there are folders above it at most, and
 *     has none behind a name. So also what leads through another link stays below.
 *  ARCHIVE-3 There are files and links; what else there is, is not read, and a head that says otherwise is refused.
 *  ARCHIVE-4 It ends with a head that counts the records: what was cut off is none.
 */
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { pathFault } from '../manifest.ts';

/** Where a path is told from. */
export type CacheRoot = 'workspace' | 'home';

export interface FileHead {
  readonly root: CacheRoot;
  readonly path: string;
  readonly size: number;
  /** Permissions. */
  readonly mode: number;
  /** When it was changed, milliseconds since 1970: tools that compare times find what they left. */
  readonly time: number;
}
export interface LinkHead {
  readonly root: CacheRoot;
  readonly path: string;
  readonly link: string;
}
interface EndHead {
  readonly end: true;
  readonly records: number;
}
type ArchiveHead = FileHead | LinkHead | EndHead;

/** Of records in one block, before it is packed; a block holds its last record whole up to its content. */
export const BLOCK_BYTES = 4 * 1024 * 1024;
const HEAD_BYTES_MAX = 16 * 1024;
/** What zstd makes of bytes that cannot be made smaller, with room to spare. */
const PACKED_BYTES_MAX = BLOCK_BYTES + 64 * 1024;
const LINK_BYTES_MAX = 1_024;
const LENGTH_BYTES = 4;
const PERMISSIONS = 0o777;
const TIME_MAX = 8_640_000_000_000_000;
/** Fast enough that a disk waits for it no longer than for `tar`. */
const LEVEL = 1;

export class BadArchive extends Error {}

/** Why a link cannot be one of an archive; undefined: it can (ARCHIVE-2). */
export function linkFault(path: string, target: string): string | undefined {
  if (target === '' || target.startsWith('/') || Buffer.byteLength(target) > LINK_BYTES_MAX)
    return 'it is a link that leaves the folder';
  // oxlint-disable-next-line no-control-regex -- names with such characters are what is looked for
  if (/[\0-\x1f\x7f\ufffd]/.test(target)) return 'it is a link with control characters';
  const names = target.split('/').filter((name) => name !== '' && name !== '.');
  const up = names.findIndex((name) => name !== '..');
  const ups = up === -1 ? names.length : up;
  if (names.slice(ups).includes('..') || ups > path.split('/').length - 1) return 'it is a link that leaves the folder';
  return undefined;
}

/** @throws BadArchive */
function checkedHead(value: unknown): ArchiveHead {
  const { end, records, root, path, size, mode, time, link } = (value ?? {}) as Record<string, unknown>;
  if (end === true) {
    if (typeof records !== 'number') throw new BadArchive('its end counts nothing');
    return { end, records };
  }
  if ((root !== 'workspace' && root !== 'home') || typeof path !== 'string')
    throw new BadArchive('a record has no path');
  const fault = pathFault(path);
  if (fault !== undefined) throw new BadArchive(`a path cannot be one: ${fault}`);
  if (link !== undefined) {
    if (typeof link !== 'string' || linkFault(path, link) !== undefined)
      throw new BadArchive('a link leaves the folder');
    return { root, path, link };
  }
  const isNumber = (number: unknown, max: number): number is number =>
    typeof number === 'number' && Number.isSafeInteger(number) && number >= 0 && number <= max;
  if (!isNumber(size, Number.MAX_SAFE_INTEGER) || !isNumber(mode, PERMISSIONS) || !isNumber(time, TIME_MAX))
    throw new BadArchive('a file has no size, no permissions or no time');
  return { root, path, size, mode, time };
}

/** Takes heads and contents, and hands blocks on as they fill. */
export class ArchiveWriter {
  readonly #write: (bytes: Uint8Array) => void;
  readonly #block = Buffer.allocUnsafe(BLOCK_BYTES);
  #filled = 0;
  #records = 0;

  constructor(write: (bytes: Uint8Array) => void) {
    this.#write = write;
  }

  head(head: FileHead | LinkHead): void {
    this.#records += 1;
    this.#append(head);
  }

  content(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) {
      const taken = Math.min(bytes.length - at, BLOCK_BYTES - this.#filled);
      this.#block.set(bytes.subarray(at, at + taken), this.#filled);
      this.#filled += taken;
      at += taken;
      if (this.#filled === BLOCK_BYTES) this.#flush();
    }
  }

  end(): void {
    this.#append({ end: true, records: this.#records });
    this.#flush();
  }

  #append(head: ArchiveHead): void {
    const text = Buffer.from(JSON.stringify(head));
    const length = Buffer.alloc(LENGTH_BYTES);
    length.writeUInt32BE(text.length);
    this.content(length);
    this.content(text);
  }

  #flush(): void {
    if (this.#filled === 0) return;
    const packed = zstdCompressSync(this.#block.subarray(0, this.#filled), {
      params: { [constants.ZSTD_c_compressionLevel]: LEVEL },
    });
    const length = Buffer.alloc(LENGTH_BYTES);
    length.writeUInt32BE(packed.length);
    this.#write(length);
    this.#write(packed);
    this.#filled = 0;
  }
}

/** Reads an archive from a source that gives as many bytes as are asked for, or fewer at its end. */
export class ArchiveReader {
  readonly #read: (count: number) => Buffer;
  #block: Buffer = Buffer.alloc(0);
  #at = 0;
  #records = 0;

  constructor(read: (count: number) => Buffer) {
    this.#read = read;
  }

  /** The next record; after that of a file its content is to be taken. Null: it has ended as it should. @throws BadArchive */
  next(): FileHead | LinkHead | null {
    const length = this.#whole(LENGTH_BYTES).readUInt32BE();
    if (length > HEAD_BYTES_MAX) throw new BadArchive('a head is too long');
    let parsed: unknown;
    try {
      parsed = JSON.parse(this.#whole(length).toString('utf8'));
    } catch (error) {
      if (error instanceof BadArchive) throw error;
      throw new BadArchive('a head is not JSON', { cause: error });
    }
    const head = checkedHead(parsed);
    if (!('end' in head)) {
      this.#records += 1;
      return head;
    }
    if (head.records !== this.#records) throw new BadArchive('records are missing');
    return null;
  }

  /** Of the content: as much as is at hand, and `count` at most. */
  content(count: number): Buffer {
    if (this.#at === this.#block.length) this.#nextBlock();
    const taken = this.#block.subarray(this.#at, this.#at + count);
    this.#at += taken.length;
    return taken;
  }

  #whole(count: number): Buffer {
    const first = this.content(count);
    if (first.length === count) return first;
    const parts = [first];
    for (let have = first.length; have < count;) {
      const part = this.content(count - have);
      parts.push(part);
      have += part.length;
    }
    return Buffer.concat(parts);
  }

  #nextBlock(): void {
    const head = this.#read(LENGTH_BYTES);
    if (head.length < LENGTH_BYTES) throw new BadArchive('it was cut off');
    const length = head.readUInt32BE();
    if (length === 0 || length > PACKED_BYTES_MAX) throw new BadArchive('a block is too long');
    const packed = this.#read(length);
    if (packed.length < length) throw new BadArchive('it was cut off');
    try {
      this.#block = zstdDecompressSync(packed, { maxOutputLength: BLOCK_BYTES });
    } catch (error) {
      throw new BadArchive('a block cannot be unpacked', { cause: error });
    }
    if (this.#block.length === 0) throw new BadArchive('a block is empty');
    this.#at = 0;
  }
}
