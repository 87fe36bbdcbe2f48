/** Objects as git keeps them: a pack and its index (version 2), byte for byte as git reads them (gitformat-pack). */
import { createHash } from 'node:crypto';
import { crc32, deflateSync } from 'node:zlib';

export interface PackedObject {
  /** 40 hexadecimal digits. */
  readonly id: string;
  readonly type: keyof typeof TYPES;
  readonly content: Uint8Array;
  readonly packed: Packed;
}

/** An object as it stands in a pack. */
export interface Packed {
  readonly bytes: Uint8Array;
  readonly crc: number;
}

export interface Pack {
  /** Of its files, before `.pack` and `.idx`. */
  readonly name: string;
  readonly pack: Uint8Array;
  readonly index: Uint8Array;
  /** Where each object begins in it. */
  readonly offsets: readonly number[];
}

const TYPES = { commit: 1, tree: 2, blob: 3 } as const;
const INDEX_MAGIC = 0xff744f63;

export function packedOf(type: PackedObject['type'], content: Uint8Array): Packed {
  const bytes = Buffer.concat([headOf(TYPES[type], content.length), deflateSync(content, { level: 1 })]);
  return { bytes, crc: crc32(bytes) };
}

/** Of less than 2 GiB, each object once. */
export function packOf(objects: readonly PackedObject[]): Pack {
  const header = Buffer.alloc(12);
  header.write('PACK', 'latin1');
  header.writeUInt32BE(2, 4);
  header.writeUInt32BE(objects.length, 8);
  const parts: Uint8Array[] = [header];
  const placed: { readonly id: Buffer; readonly crc: number; readonly offset: number }[] = [];
  let offset = header.length;
  for (const { id, packed } of objects) {
    placed.push({ id: Buffer.from(id, 'hex'), crc: packed.crc, offset });
    parts.push(packed.bytes);
    offset += packed.bytes.length;
  }
  const checksum = digestOf(...parts);
  return {
    name: `pack-${checksum.toString('hex')}`,
    pack: Buffer.concat([...parts, checksum]),
    index: indexOf(placed, checksum),
    offsets: placed.map((each) => each.offset),
  };
}

/** The type and the size, four bits and then seven in each byte. */
function headOf(type: number, size: number): Buffer {
  const bytes: number[] = [];
  let byte = (type << 4) | (size & 0xf);
  for (let rest = Math.floor(size / 16); ; rest = Math.floor(rest / 128)) {
    if (rest === 0) return Buffer.from([...bytes, byte]);
    bytes.push(byte | 0x80);
    byte = rest & 0x7f;
  }
}

function indexOf(
  placed: readonly { readonly id: Buffer; readonly crc: number; readonly offset: number }[],
  checksum: Buffer,
): Buffer {
  const sorted = placed.toSorted((a, b) => Buffer.compare(a.id, b.id));
  const numbers = Buffer.alloc(4 * (2 + 256));
  numbers.writeUInt32BE(INDEX_MAGIC, 0);
  numbers.writeUInt32BE(2, 4);
  for (const { id } of sorted) {
    const at = 8 + 4 * (id[0] ?? 0);
    numbers.writeUInt32BE(numbers.readUInt32BE(at) + 1, at);
  }
  // How many there are up to each first byte.
  for (let at = 12; at < numbers.length; at += 4)
    numbers.writeUInt32BE(numbers.readUInt32BE(at) + numbers.readUInt32BE(at - 4), at);
  const table = (value: (each: (typeof sorted)[number]) => number): Buffer => {
    const bytes = Buffer.alloc(4 * sorted.length);
    for (const [index, each] of sorted.entries()) bytes.writeUInt32BE(value(each), 4 * index);
    return bytes;
  };
  const parts = [
    numbers,
    ...sorted.map(({ id }) => id),
    table(({ crc }) => crc),
    table(({ offset }) => offset),
    checksum,
  ];
  return Buffer.concat([...parts, digestOf(...parts)]);
}

export function digestOf(...parts: readonly Uint8Array[]): Buffer {
  const hash = createHash('sha1');
  for (const part of parts) hash.update(part);
  return hash.digest();
}
