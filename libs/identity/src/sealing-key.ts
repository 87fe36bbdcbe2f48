/** What auth gives is sealed to a key of who asks, and nobody else can open that (P31). Its secret half lives in memory alone. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { compactDecrypt, CompactEncrypt, importJWK } from 'jose';

const ALGORITHM = 'ECDH-ES';
const ENCRYPTION = 'A256GCM';

export interface SealingKey {
  /** X25519, base64url. */
  readonly publicKey: string;
  /** Rejects for what was sealed to another key. */
  open(sealed: string): Promise<Uint8Array>;
}

export function newSealingKey(): SealingKey {
  const { publicKey, privateKey } = generateKeyPairSync('x25519');
  return { publicKey: publicKey.export({ format: 'jwk' }).x ?? '', open: (sealed) => openWith(privateKey, sealed) };
}

/** As JSON, for who holds the other half of this key. Rejects where it is none. */
export async function sealTo(publicKey: string, content: unknown): Promise<string> {
  const key = await importJWK({ kty: 'OKP', crv: 'X25519', x: publicKey }, ALGORITHM);
  return await new CompactEncrypt(Buffer.from(JSON.stringify(content)))
    .setProtectedHeader({ alg: ALGORITHM, enc: ENCRYPTION })
    .encrypt(key);
}

async function openWith(key: KeyObject, sealed: string): Promise<Uint8Array> {
  const { plaintext } = await compactDecrypt(sealed, key, {
    keyManagementAlgorithms: [ALGORITHM],
    contentEncryptionAlgorithms: [ENCRYPTION],
  });
  return plaintext;
}
