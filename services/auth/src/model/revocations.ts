/**
 * Telling every gateway, and everybody else who watches the bucket, that tokens already given out are dead. An entry lives
 * a little longer than any access token it could concern. Written before what it ends is deleted: once a caller has been
 * answered, no gateway that hears the broker takes the token any more.
 */
import { buckets, putExpiring, type Bus } from '@penstock/bus';
import { Unavailable } from '@penstock/errors';
import { REVOCATION_TTL_MS, type Revocation } from '@penstock/identity';

export class Revocations {
  readonly #bus: Bus;

  constructor(bus: Bus) {
    this.#bus = bus;
  }

  /** `key` by `revocationKeys`. Throws `Unavailable` where the broker does not confirm; then nothing may be deleted. */
  async revoke(key: string, before: number): Promise<void> {
    const value: Revocation = { before };
    try {
      await putExpiring(this.#bus, buckets.revocations, key, value, REVOCATION_TTL_MS);
    } catch (cause) {
      throw new Unavailable('The revocation could not be made known everywhere; try again.', { cause });
    }
  }
}
