/**
 * Headers as strangers write them: the broker stores and passes on whatever bytes stand there. The client would throw at a name or a value
 * that is none, wherever the headers are first looked at, and compare each name with all before it: a megabyte of short ones takes minutes.
 *
 *  HEADERS-1 What is no header is left out, and the others are read.
 *  HEADERS-2 Reading takes no longer than for `ENDS_BYTES` at either end, which is more than any sender of ours writes. At the end stands
 *     what the broker adds.
 */
import { MsgHdrsImpl } from '@nats-io/transport-node';

const LINE_END = '\r\n';
const HEADER = /^([!-9;-~]*):([^\r\n]*)$/u;
/** A few hundred names at most: the client is quick with those. */
const SHORT_BYTES = 1024;
const ENDS_BYTES = 8 * 1024;

const decodeStrictly = MsgHdrsImpl.decode;

/** From now on, for all connections of the thread. */
export function takeForeignHeaders(): void {
  MsgHdrsImpl.decode = decode;
}

function decode(bytes: Uint8Array): MsgHdrsImpl {
  if (bytes.length <= SHORT_BYTES) {
    try {
      return decodeStrictly(bytes);
    } catch {
      // Read once more, line by line.
    }
  }
  const [first = '', ...lines] = linesOf(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
  const read = decodeStrictly(Buffer.from(first));
  for (const line of lines) {
    const [, name, value = ''] = HEADER.exec(line) ?? [];
    if (name === undefined) continue;
    const values = read.headers.get(name);
    if (values === undefined) read.headers.set(name, [value.trim()]);
    else values.push(value.trim());
  }
  return read;
}

/** Of a long one without the line that is cut at either end. */
function linesOf(bytes: Buffer): string[] {
  if (bytes.length <= 2 * ENDS_BYTES) return bytes.toString().split(LINE_END);
  const begin = bytes.toString('utf8', 0, ENDS_BYTES).split(LINE_END);
  const end = bytes.toString('utf8', bytes.length - ENDS_BYTES).split(LINE_END);
  return [...begin.slice(0, -1), ...end.slice(1)];
}
