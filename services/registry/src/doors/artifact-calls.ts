/** What gateways ask of the keeper of artifacts, on the bus. */
import type { Bus, BusSubscription } from '@penstock/bus';
import { answerCalls } from '@penstock/service';
import type { PartRequest, UsageRequest } from '@penstock/artifacts';
import type { ArtifactKeeper } from '../artifacts/keeper.ts';

export function answerArtifactCalls(bus: Bus, keeper: ArtifactKeeper): BusSubscription {
  return answerCalls(bus, 'registry', {
    'artifact.get': (request: PartRequest) => keeper.part(request),
    'artifact.usage': (request: UsageRequest) => keeper.usage(request),
  });
}
