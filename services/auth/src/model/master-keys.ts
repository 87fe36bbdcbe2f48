/**
 * The keys that secrets are kept under: `SERVICE_MASTER_KEY`. The first encrypts, all decrypt, so that a new one can be put in
 * front of the old one.
 *
 * MASTER-KEY-1 What is sealed names its document, and opens for that document only: a row copied over another opens nowhere.
 */
import { createHash } from 'node:crypto';
import { CompactEncrypt, compactDecrypt } from 'jose';
import { Unavailable } from '@penstock/errors';

/** Of a key's SHA-256: enough to tell the keys of one server apart, and says nothing about the key. */
const KEY_ID_LENGTH = 16;

export class MasterKeys {
  readonly #keys: ReadonlyMap<string, Uint8Array>;
  /** Of the key that encrypts; undefined where there is none. */
  readonly currentId: string | undefined;

  /** Each is 32 bytes, as base64. */
  constructor(keys: readonly string[]) {
    this.#keys = new Map(keys.map((text) => Buffer.from(text, 'base64')).map((key) => [idOf(key), key]));
    [this.currentId] = this.#keys.keys();
  }

  /** Of all, the first one first. */
  get ids(): readonly string[] {
    return [...this.#keys.keys()];
  }

  /** Throws `Unavailable` where there is no key. */
  async seal(document: string, bytes: Uint8Array): Promise<{ readonly sealed: string; readonly keyId: string }> {
    const keyId = this.currentId;
    const key = keyId === undefined ? undefined : this.#keys.get(keyId);
    if (keyId === undefined || key === undefined)
      throw new Unavailable(
        'This server keeps no secrets: its operator has not set SERVICE_MASTER_KEY (make one with: openssl rand -base64 32).',
      );
    const sealed = await new CompactEncrypt(bytes)
      .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', kid: keyId, document })
      .encrypt(key);
    return { sealed, keyId };
  }

  /** Null: none of the keys here opens it, or it belongs to another document. */
  async open(document: string, sealed: string): Promise<Uint8Array | null> {
    try {
      const { plaintext, protectedHeader } = await compactDecrypt(
        sealed,
        ({ kid }) => {
          const key = this.#keys.get(kid ?? '');
          if (key === undefined) throw new RangeError('the key is not among those of this server');
          return key;
        },
        { keyManagementAlgorithms: ['dir'], contentEncryptionAlgorithms: ['A256GCM'] },
      );
      return protectedHeader['document'] === document ? plaintext : null;
    } catch {
      return null;
    }
  }
}

function idOf(key: Uint8Array): string {
  return createHash('sha256').update(key).digest('hex').slice(0, KEY_ID_LENGTH);
}
