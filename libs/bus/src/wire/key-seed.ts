/** Ed25519 keys by which a client proves itself to the broker, in its notation: the seed is the private part. */
import { nkeys } from '@nats-io/transport-node';

export function newKeySeed(): Uint8Array {
  return nkeys.createUser().getSeed();
}

/** Throws for what is no seed. */
export function publicKeyOf(seed: Uint8Array): string {
  return nkeys.fromSeed(seed).getPublicKey();
}

/** Of a user, with the right checksum: the broker refuses a whole configuration for one that is not. */
export function isPublicKey(text: string): boolean {
  if (!/^U[A-Z2-7]{55}$/u.test(text)) return false;
  try {
    nkeys.fromPublic(text);
    return true;
  } catch {
    return false;
  }
}
