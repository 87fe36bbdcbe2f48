/** What a caller may do in the registry, by its tenant and tier. */
import { UNLIMITED, type Tiers } from '@penstock/config';
import type { RegistryCaller } from '@penstock/extension';
import { Forbidden, Unauthenticated } from '@penstock/errors';
import { SERVICE_TENANT } from '@penstock/run';

/** The tenant that what it publishes belongs to. */
export function requirePublisher(caller: RegistryCaller, tiers: Tiers): string {
  if (caller.tenant === null) throw new Unauthenticated();
  if (!isExempt(caller) && !tiers.limitsOf(caller.tier).canPublishExtensions)
    throw new Forbidden(`The tier '${caller.tier}' may not publish extensions.`);
  return caller.tenant;
}

/** Private extensions of one's own; public ones are for everybody. */
export function mayUsePrivate(caller: RegistryCaller, tiers: Tiers): boolean {
  return isExempt(caller) || tiers.limitsOf(caller.tier).canUsePrivateExtensions;
}

/** Of all versions of its tenant together. */
export function packageBytesMax(caller: RegistryCaller, tiers: Tiers): number {
  const { packageStorageMb } = tiers.limitsOf(caller.tier);
  return isExempt(caller) || packageStorageMb >= UNLIMITED ? Infinity : packageStorageMb * 1_000_000;
}

/** The server's own tenant and its admins are not held to a tier. */
function isExempt(caller: RegistryCaller): boolean {
  return caller.tenant === SERVICE_TENANT || caller.isAdmin;
}
