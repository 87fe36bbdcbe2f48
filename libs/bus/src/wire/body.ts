/**
 * The body of a message: JSON; or, where its field `data` holds bytes (or that of the `value` of an answer), the JSON of the rest
 * and the bytes behind it as they are. Base64 in JSON would cost most of what it takes to move them.
 */

/** No JSON text begins so. */
const RAW = 0;
/** Behind it: where the bytes belong, and the length of the JSON. */
const HEAD_BYTES = 6;
const IN_BODY = 0;
const IN_VALUE = 1;

interface Holder {
  data?: unknown;
  value?: { data?: unknown } | null;
}

export function encodeBody(body: unknown): string | Uint8Array {
  const holder = body as Holder | null | undefined;
  if (holder?.data instanceof Uint8Array) return framed(IN_BODY, { ...holder, data: null }, holder.data);
  const inner = holder?.value?.data;
  if (inner instanceof Uint8Array)
    return framed(IN_VALUE, { ...holder, value: { ...holder?.value, data: null } }, inner);
  return JSON.stringify(body);
}

export function parseJson<T>(data: Uint8Array): T {
  return JSON.parse(Buffer.from(data.buffer, data.byteOffset, data.length).toString('utf8')) as T;
}

/** Throws where it is neither. */
export function decodeBody<T>(message: Uint8Array): T {
  if (message[0] !== RAW) return parseJson<T>(message);
  const bytes = Buffer.from(message.buffer, message.byteOffset, message.length);
  if (bytes.length < HEAD_BYTES) throw new SyntaxError('a body with bytes is too short');
  const end = HEAD_BYTES + bytes.readUInt32BE(2);
  if (end > bytes.length) throw new SyntaxError('a body with bytes was cut off');
  const body = JSON.parse(bytes.toString('utf8', HEAD_BYTES, end)) as Holder;
  const holder = bytes[1] === IN_VALUE ? body?.value : body;
  if (typeof holder !== 'object' || holder === null) throw new SyntaxError('a body has no place for its bytes');
  holder.data = bytes.subarray(end);
  return body as T;
}

function framed(where: number, rest: object, bytes: Uint8Array): Uint8Array {
  const json = Buffer.from(JSON.stringify(rest));
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt8(RAW, 0);
  head.writeUInt8(where, 1);
  head.writeUInt32BE(json.length, 2);
  return Buffer.concat([head, json, bytes]);
}
