/** Which limits hold for what a caller triggers. Its runs' owner enforces them; here is only known which tier they are of. */
import { UNLIMITED, type TierLimits, type Tiers } from '@penstock/config';
import type { CreateRequest } from '@penstock/bus';
import type { Caller } from '@penstock/identity';

export interface TierSettings {
  readonly tiers: Tiers;
  /** `SERVICE_TENANT_TIER`: of the tenant `service`; absent: no limits there. */
  readonly tenantTier?: string | undefined;
}

export function runLimitsOf(settings: TierSettings): (caller: Caller) => CreateRequest['limits'] {
  const { tiers, tenantTier } = settings;
  return ({ user }) => {
    const tier = user?.tier ?? tenantTier;
    return tier === undefined ? undefined : limitsOfRuns(tiers.limitsOf(tier));
  };
}

/** Undefined where there is nothing to count. */
function limitsOfRuns({ pipelineRunLimit, maxConcurrent }: TierLimits): CreateRequest['limits'] {
  return pipelineRunLimit >= UNLIMITED && maxConcurrent >= UNLIMITED ? undefined : { pipelineRunLimit, maxConcurrent };
}
