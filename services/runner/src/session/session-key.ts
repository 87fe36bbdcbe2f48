/** The key of a session: what it is given is sealed to it, and nobody else can open that (P31). It lives in memory alone. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { compactDecrypt } from 'jose';

export interface SessionKey {
  /** X25519, base64url; stands in the session's lease. */
  readonly publicKey: string;
  /** Rejects for what was sealed to another key. */
  open(sealed: string): Promise<Uint8Array>;
}

export function newSessionKey(): SessionKey {
  const { publicKey, privateKey } = generateKeyPairSync('x25519');
  return { publicKey: publicKey.export({ format: 'jwk' }).x ?? '', open: (sealed) => openWith(privateKey, sealed) };
}

async function openWith(key: KeyObject, sealed: string): Promise<Uint8Array> {
  const { plaintext } = await compactDecrypt(sealed, key, {
    keyManagementAlgorithms: ['ECDH-ES'],
    contentEncryptionAlgorithms: ['A256GCM'],
  });
  return plaintext;
}
