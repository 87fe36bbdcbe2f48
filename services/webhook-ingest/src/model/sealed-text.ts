/** Secrets that have to be usable, as the store has them: AES-256-GCM, by a key made from `JWT_SECRET`. */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** The first seals, all open: each is made from one of `JWT_SECRET`. */
export type SealingKeys = readonly [Buffer, ...Buffer[]];

/** Bound to its document: another's cipher text in its place does not open. */
export function sealText([key]: SealingKeys, document: string, text: string): Uint8Array {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(document));
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]);
}

/** Null: written under another `JWT_SECRET`. */
export function openText(keys: SealingKeys, document: string, sealed: string | Uint8Array): string | null {
  const bytes = Buffer.from(sealed);
  for (const key of keys) {
    const opened = openedBy(key, document, bytes);
    if (opened !== null) return opened;
  }
  return null;
}

function openedBy(key: Buffer, document: string, bytes: Buffer): string | null {
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, NONCE_BYTES)).setAAD(Buffer.from(document));
    decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
    return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]).toString();
  } catch {
    return null;
  }
}
