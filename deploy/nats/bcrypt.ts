/**
 * bcrypt, as nats-server checks passwords (`$2a$`). Written out because no dependency of the project has it, and because it
 * is needed by this generator alone. Whether it is right is nats-server's word: the tests connect with what it made.
 */
import { randomBytes } from 'node:crypto';

/**
 * The least that bcrypt has. Its slowness protects guessable passwords; ours are 192 random bits, and a fleet that connects
 * again after a restart of the broker would wait for each of these (cost 11: 100 ms of a core for each connection).
 */
const COST = 4;
const PASSWORD_BYTES_MAX = 71;
const ALPHABET = './ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const MAGIC = 'OrpheanBeholderScryDoubt';
const ROUNDS = 16;
const P_WORDS = ROUNDS + 2;
const S_WORDS = 4 * 256;

interface State {
  readonly p: Uint32Array;
  readonly s: Uint32Array;
}

/** Throws a RangeError on a password longer than 71 bytes: bcrypt would ignore the rest. */
export function bcrypt(password: string, salt: Uint8Array = randomBytes(16)): string {
  if (Buffer.byteLength(password) > PASSWORD_BYTES_MAX)
    throw new RangeError(`a password of more than ${PASSWORD_BYTES_MAX} bytes`);
  const key = Buffer.from(`${password}\0`);
  const state = initialState();
  expand(state, key, salt);
  for (let round = 0; round < 2 ** COST; round += 1) {
    expand(state, key, null);
    expand(state, salt, null);
  }
  const text = Buffer.from(MAGIC);
  for (let at = 0; at < text.length; at += 8) {
    let block: [number, number] = [text.readUInt32BE(at), text.readUInt32BE(at + 4)];
    for (let time = 0; time < 64; time += 1) block = encipher(state, ...block);
    text.writeUInt32BE(block[0], at);
    text.writeUInt32BE(block[1], at + 4);
  }
  // The last byte is left out, as ever since the first implementation.
  return `$2a$${String(COST).padStart(2, '0')}$${encode(salt)}${encode(text.subarray(0, -1))}`;
}

function expand({ p, s }: State, key: Uint8Array, salt: Uint8Array | null): void {
  for (let index = 0, at = 0; index < P_WORDS; index += 1, at += 4) p[index] = (p[index] ?? 0) ^ cyclicWord(key, at);
  let block: [number, number] = [0, 0];
  let at = 0;
  for (const words of [p, s]) {
    for (let index = 0; index < words.length; index += 2, at += 8) {
      const [left, right] = block;
      block =
        salt === null
          ? encipher({ p, s }, left, right)
          : encipher({ p, s }, left ^ cyclicWord(salt, at), right ^ cyclicWord(salt, at + 4));
      words[index] = block[0];
      words[index + 1] = block[1];
    }
  }
}

/** Blowfish. */
function encipher({ p, s }: State, left: number, right: number): [number, number] {
  let [one, other] = [left, right];
  for (let round = 0; round < ROUNDS; round += 1) {
    one ^= p[round] ?? 0;
    const mixed =
      (((s[one >>> 24] ?? 0) + (s[256 + ((one >>> 16) & 255)] ?? 0)) ^ (s[512 + ((one >>> 8) & 255)] ?? 0)) +
      (s[768 + (one & 255)] ?? 0);
    [one, other] = [other ^ mixed, one];
  }
  return [(other ^ (p[ROUNDS + 1] ?? 0)) >>> 0, (one ^ (p[ROUNDS] ?? 0)) >>> 0];
}

function cyclicWord(bytes: Uint8Array, at: number): number {
  let word = 0;
  for (let offset = 0; offset < 4; offset += 1) word = (word << 8) | (bytes[(at + offset) % bytes.length] ?? 0);
  return word >>> 0;
}

function encode(bytes: Uint8Array): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('');
  return (bits.match(/.{1,6}/g) ?? []).map((six) => ALPHABET[Number.parseInt(six.padEnd(6, '0'), 2)]).join('');
}

let words: readonly number[] | null = null;

function initialState(): State {
  words ??= fractionOfPi(P_WORDS + S_WORDS);
  return { p: Uint32Array.from(words.slice(0, P_WORDS)), s: Uint32Array.from(words.slice(P_WORDS)) };
}

/** Blowfish begins with the binary digits of pi behind the point, 32 to a word; computed, as they need no table then. */
function fractionOfPi(count: number): number[] {
  const guardBits = 64;
  const bits = BigInt(32 * count + guardBits);
  // Machin: pi = 16 arctan(1/5) - 4 arctan(1/239).
  const pi = 16n * arctanOfInverse(5n, bits) - 4n * arctanOfInverse(239n, bits);
  const hex = (pi >> BigInt(guardBits)).toString(16).slice(1); // without the 3 before the point
  return Array.from({ length: count }, (_, index) => Number.parseInt(hex.slice(8 * index, 8 * index + 8), 16));
}

function arctanOfInverse(x: bigint, bits: bigint): bigint {
  let power = (1n << bits) / x;
  let sum = power;
  for (let n = 3n, sign = -1n; power !== 0n; n += 2n, sign = -sign) {
    power /= x * x;
    sum += (sign * power) / n;
  }
  return sum;
}
