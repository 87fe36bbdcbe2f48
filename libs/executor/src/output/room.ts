/** What most stages say fits; what they held waits for the collector. */
const FIRST_BYTES = 4 * 1024;

/** The buffer, or one with room for `length` bytes that begins with its `used` ones: a small one, or at once `lengthMax`, more than which is never given. */
export function withRoom(buffer: Buffer | null, used: number, length: number, lengthMax: number): Buffer {
  if (buffer !== null && Math.min(length, lengthMax) <= buffer.length) return buffer;
  const larger = Buffer.allocUnsafeSlow(length <= FIRST_BYTES ? FIRST_BYTES : lengthMax);
  buffer?.copy(larger, 0, 0, used);
  return larger;
}
