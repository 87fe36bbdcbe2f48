/** What an owner answers instead of what was asked for. */
import type { Epoch } from '@penstock/run';
import type { OwnerErrorCode, OwnerRefusal } from '@penstock/bus';

const RETRY_AFTER_SECS = 2;

export function refusal(epoch: Epoch, code: OwnerErrorCode, message: string): OwnerRefusal {
  return { ok: false, code, message, epoch };
}

/** To be asked again soon. */
export function unavailable(epoch: Epoch, message: string): OwnerRefusal {
  return { ...refusal(epoch, 'UNAVAILABLE', message), retryAfterSecs: RETRY_AFTER_SECS };
}
