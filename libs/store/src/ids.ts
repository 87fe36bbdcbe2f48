/** Ids as they are shown: UUIDv7, by whose order those of one kind are sorted by their time. */
import { hash, randomBytes } from 'node:crypto';

export function newId(now: number): string {
  return idOf(now, randomBytes(16));
}

/** Of what is known by a name, and was made at this time: always the same. */
export function idOfNamed(now: number, name: string): string {
  return idOf(now, hash('sha256', name, 'buffer').subarray(0, 16));
}

function idOf(now: number, random: Uint8Array): string {
  const bytes = Buffer.from(random);
  bytes.writeUIntBE(now, 0, 6);
  bytes.writeUInt8(0x70 | (bytes.readUInt8(6) & 0x0f), 6);
  bytes.writeUInt8(0x80 | (bytes.readUInt8(8) & 0x3f), 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/u, '$1-$2-$3-$4-$5');
}
