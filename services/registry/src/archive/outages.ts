/** What ends a pass over all tenants' logs at once; anything else is the matter of the one whose runs it was about. */
import { BrokerAway, RequestTimeout } from '@penstock/bus';
import { ObjectsUnavailable } from '@penstock/object-store';
import { StoreUnavailable } from '@penstock/store';

/** Of what the runs of all tenants need. */
const OUTAGES = [BrokerAway, RequestTimeout, ObjectsUnavailable, StoreUnavailable] as const;

export function isOutage(error: unknown): boolean {
  return OUTAGES.some((outage) => error instanceof outage);
}
