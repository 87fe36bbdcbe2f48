/**
 * The text of a personal token, and of a runner's: `svc_` or `rt_`, 31 base62 digits of a random value (184 bits), and 6 of their CRC32. The checksum
 * lets a scanner tell a token from chance, and lets us refuse a mistyped one without asking anybody.
 */
import { hash, randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { PERSONAL_TOKEN_PREFIX } from './auth-messages.ts';
import { RUNNER_TOKEN_PREFIX } from './runner-messages.ts';

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const RANDOM_DIGITS = 31;
const CHECKSUM_DIGITS = 6;
const FORM = new RegExp(`^([0-9A-Za-z]{${RANDOM_DIGITS}})([0-9A-Za-z]{${CHECKSUM_DIGITS}})$`, 'u');

export function newPersonalToken(): string {
  return newToken(PERSONAL_TOKEN_PREFIX);
}

export function newRunnerToken(): string {
  return newToken(RUNNER_TOKEN_PREFIX);
}

/** Whether it could be one of ours: says nothing about whether it is. */
export function isPersonalToken(text: string): boolean {
  return isToken(PERSONAL_TOKEN_PREFIX, text);
}

/** The same of a runner's. */
export function isRunnerToken(text: string): boolean {
  return isToken(RUNNER_TOKEN_PREFIX, text);
}

function newToken(prefix: string): string {
  const random = Array.from({ length: RANDOM_DIGITS }, () => DIGITS[randomInt(DIGITS.length)]).join('');
  return `${prefix}${random}${checksumOf(random)}`;
}

function isToken(prefix: string, text: string): boolean {
  const [, random, checksum] = (text.startsWith(prefix) ? FORM.exec(text.slice(prefix.length)) : null) ?? [];
  return random !== undefined && checksum === checksumOf(random);
}

/** Of either. Answers the name under which it is kept and asked for: the SHA-256 of its text in hex. A random value of that size needs no salt. */
export function personalTokenHash(token: string): string {
  return hash('sha256', token, 'hex');
}

function checksumOf(random: string): string {
  let rest = crc32(random);
  let digits = '';
  for (let index = 0; index < CHECKSUM_DIGITS; index++) {
    digits = (DIGITS[rest % DIGITS.length] ?? '') + digits;
    rest = Math.floor(rest / DIGITS.length);
  }
  return digits;
}
