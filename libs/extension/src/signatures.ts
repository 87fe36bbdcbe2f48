/** Ed25519 keys of those who publish, and their signatures over the hash of a package. */
import { createPrivateKey, createPublicKey, generateKeyPairSync, sign, verify, type KeyObject } from 'node:crypto';
import { BadKey } from './errors.ts';
import { signedText } from './registry-messages.ts';

/** What stands before the 32 bytes in the SPKI form of every Ed25519 key. */
const SPKI_HEAD = Buffer.from('302a300506032b6570032100', 'hex');

export interface SigningKeyPair {
  /** PKCS#8 in PEM; whoever has it signs in the owner's name. */
  readonly privateKey: string;
  /** Base64 of the 32 raw bytes: what is registered with a registry. */
  readonly publicKey: string;
}

export function generateSigningKeys(): SigningKeyPair {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  return { privateKey: privateKey.export({ format: 'pem', type: 'pkcs8' }).toString(), publicKey: rawOf(publicKey) };
}

/** The signature in base64. Throws BadKey for what is no Ed25519 private key. */
export function signPackage(packageHash: string, privateKey: string): string {
  return sign(null, Buffer.from(signedText(packageHash)), privateKeyOf(privateKey)).toString('base64');
}

/** Throws BadKey. */
export function publicKeyOf(privateKey: string): string {
  return rawOf(createPublicKey(privateKeyOf(privateKey)));
}

/** False also for what is no key or no signature. */
export function isSignedBy(packageHash: string, signature: string, publicKey: string): boolean {
  const raw = Buffer.from(publicKey, 'base64');
  if (raw.length !== 32) return false;
  const key = createPublicKey({ key: Buffer.concat([SPKI_HEAD, raw]), format: 'der', type: 'spki' });
  return verify(null, Buffer.from(signedText(packageHash)), key, Buffer.from(signature, 'base64'));
}

function privateKeyOf(pem: string): KeyObject {
  let key: KeyObject | undefined;
  try {
    key = createPrivateKey(pem);
  } catch {
    // Told below; the reason could quote the key.
  }
  if (key?.asymmetricKeyType !== 'ed25519')
    throw new BadKey('the file holds no Ed25519 private key in PEM, such as penstock extension keygen writes');
  return key;
}

function rawOf(key: KeyObject): string {
  return Buffer.from(key.export({ format: 'der', type: 'spki' }).subarray(SPKI_HEAD.length)).toString('base64');
}
