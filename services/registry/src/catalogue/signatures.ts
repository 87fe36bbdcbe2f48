/** The public keys of tenants, and whether a package is signed with one of them. */
import { createHash, createPublicKey } from 'node:crypto';
import { isSignedBy, type ExtensionKeyView } from '@penstock/extension';
import { BadUserInput, Conflict, NotFound } from '@penstock/errors';
import { isPlainNameWithin } from '@penstock/pipeline';
import { insertWithin, type Collection, type DocumentOf, type DocumentStore } from '@penstock/store';
import { keysSpec } from './collections.ts';

export interface Signature {
  readonly keyId: string;
  /** Base64. */
  readonly value: string;
}

/** How many a tenant may have: enough for one a person and a machine, few enough to try them all. */
const KEYS_OF_TENANT_MAX = 50;
const NAME_LENGTH_MAX = 100;
const PUBLIC_KEY_BYTES = 32;
const SIGNATURE_BYTES = 64;
/** What stands before the 32 bytes in the SPKI form of every Ed25519 key. */
const SPKI_HEAD = Buffer.from('302a300506032b6570032100', 'hex');

export class SigningKeys {
  readonly #keys: Collection<typeof keysSpec>;

  constructor(store: DocumentStore) {
    this.#keys = store.collection(keysSpec);
  }

  async of(tenant: string): Promise<ExtensionKeyView[]> {
    return (await this.#documents(tenant)).map(keyView);
  }

  /** The same key again is a success that changes nothing. */
  async register(
    tenant: string,
    given: { readonly publicKey: string; readonly name?: string | undefined },
    now: number,
  ): Promise<ExtensionKeyView> {
    const raw = rawPublicKey(given.publicKey);
    const name = (given.name ?? '').trim();
    if (name !== '' && !isPlainNameWithin(name, NAME_LENGTH_MAX))
      throw new BadUserInput(`'name' has at most ${NAME_LENGTH_MAX} visible characters on one line.`);
    const keyId = createHash('sha256').update(raw).digest('hex').slice(0, 16);
    const present = await this.#documents(tenant);
    const known = present.find((key) => key.keyId === keyId);
    if (known !== undefined) return keyView(known);
    const document = {
      id: `${tenant}|${keyId}`,
      tenant,
      keyId,
      name,
      publicKey: raw.toString('base64'),
      createdAt: now,
    };
    const refusal = (): Error => new Conflict(`There are ${KEYS_OF_TENANT_MAX} keys already; remove one first.`);
    await insertWithin(this.#keys, document, { where: { tenant }, max: KEYS_OF_TENANT_MAX, refusal });
    return keyView(document);
  }

  /** What it has signed counts as unsigned from now on. */
  async remove(tenant: string, keyId: string): Promise<true> {
    const id = `${tenant}|${keyId}`;
    if ((await this.#keys.get(id)) === null) throw new NotFound('You have no key with this id.');
    // A store may not know that it was this that has deleted it.
    await this.#keys.delete(id);
    return true;
  }

  /** The key of this tenant that has made the signature; null: none of them. `BadUserInput` for what is no signature. */
  async signatureOf(tenant: string, packageHash: string, signature: string): Promise<Signature | null> {
    const bytes = Buffer.from(signature, 'base64');
    if (bytes.length !== SIGNATURE_BYTES)
      throw new BadUserInput(`'signature' is to be the ${SIGNATURE_BYTES} bytes of an Ed25519 signature in base64.`);
    const key = (await this.#documents(tenant)).find(({ publicKey }) => isSignedBy(packageHash, signature, publicKey));
    return key === undefined ? null : { keyId: key.keyId, value: bytes.toString('base64') };
  }

  /** Whether a version is signed with a key that its owner still has. */
  async isSigned(tenant: string, packageHash: string, signature: Signature | null): Promise<boolean> {
    if (signature === null) return false;
    const key = await this.#keys.get(`${tenant}|${signature.keyId}`);
    return key !== null && isSignedBy(packageHash, signature.value, key.publicKey);
  }

  async #documents(tenant: string): Promise<DocumentOf<typeof keysSpec>[]> {
    return await this.#keys.list({ where: { tenant }, limit: KEYS_OF_TENANT_MAX });
  }
}

/** From PEM or from base64 of the raw bytes. */
function rawPublicKey(text: string): Buffer {
  const trimmed = text.trim();
  if (!trimmed.startsWith('-----')) {
    const raw = Buffer.from(trimmed, 'base64');
    if (raw.length === PUBLIC_KEY_BYTES) return raw;
  } else if (!trimmed.includes('PRIVATE')) {
    try {
      const key = createPublicKey(trimmed);
      if (key.asymmetricKeyType === 'ed25519')
        return Buffer.from(key.export({ format: 'der', type: 'spki' }).subarray(SPKI_HEAD.length));
    } catch {
      // Told below.
    }
  }
  throw new BadUserInput("'publicKey' is to be an Ed25519 public key: its 32 bytes in base64, or PEM.");
}

function keyView({ keyId, name, publicKey, createdAt }: DocumentOf<typeof keysSpec>): ExtensionKeyView {
  return { id: keyId, name, publicKey, createdAt: new Date(createdAt).toISOString() };
}
