/** Random values, their hashes, and what only this installation can read: all from one secret, each use with a key of its own. */
import { createCipheriv, createDecipheriv, hash, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';
import { jwtSecretsOf } from '@penstock/config';

const RANDOM_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** 256 bits, safe in a URL. */
export function randomText(): string {
  return randomBytes(RANDOM_BYTES).toString('base64url');
}

/** It hashes random values only, so nothing slower is needed. */
export function hashOf(text: string): string {
  return hash('sha256', text, 'hex');
}

export function sameText(one: string, other: string): boolean {
  return timingSafeEqual(Buffer.from(hashOf(one)), Buffer.from(hashOf(other)));
}

export class Secrets {
  readonly #secrets: readonly string[];
  /** Of each purpose: the first seals, all open. */
  readonly #keys = new Map<string, readonly Buffer[]>();

  /** `JWT_SECRET` */
  constructor(jwtSecret: string) {
    this.#secrets = jwtSecretsOf(jwtSecret);
  }

  /** Only `open` with the same purpose reads it, and nobody can change it. */
  seal(purpose: string, value: unknown): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#sealingKey(purpose), nonce);
    const sealed = Buffer.concat([cipher.update(JSON.stringify(value), 'utf8'), cipher.final()]);
    return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64url');
  }

  /** Null for what was not sealed here for this purpose. */
  open<T>(purpose: string, text: string): T | null {
    const bytes = Buffer.from(text, 'base64url');
    if (bytes.length <= NONCE_BYTES + TAG_BYTES) return null;
    for (const key of this.#keysOf(purpose)) {
      const opened = openedBy<T>(key, bytes);
      if (opened !== null) return opened;
    }
    return null;
  }

  #sealingKey(purpose: string): Buffer {
    const [first = Buffer.alloc(0)] = this.#keysOf(purpose);
    return first;
  }

  #keysOf(purpose: string): readonly Buffer[] {
    const known = this.#keys.get(purpose);
    if (known !== undefined) return known;
    const keys = this.#secrets.map((secret) => Buffer.from(hkdfSync('sha256', secret, 'penstock', purpose, 32)));
    this.#keys.set(purpose, keys);
    return keys;
  }
}

function openedBy<T>(key: Buffer, bytes: Buffer): T | null {
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, NONCE_BYTES), {
      authTagLength: TAG_BYTES,
    });
    decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
    const opened = Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]);
    return JSON.parse(opened.toString('utf8')) as T;
  } catch {
    return null;
  }
}
