/** A caller as services tell each other of it, where its tenant and its tier are what counts. */
import { SERVICE_TENANT } from '@penstock/run';
import type { Caller } from './callers.ts';

export interface OnBehalf {
  /** Null: an anonymous caller. */
  readonly tenant: string | null;
  readonly tier: string;
  readonly isAdmin: boolean;
}

export function onBehalfOf(caller: Caller): OnBehalf {
  if (caller.kind === 'api-key') return { tenant: SERVICE_TENANT, tier: 'enterprise', isAdmin: false };
  return { tenant: caller.writeTenant, tier: caller.user?.tier ?? 'free', isAdmin: caller.user?.isAdmin ?? false };
}
