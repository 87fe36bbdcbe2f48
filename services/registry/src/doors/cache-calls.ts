/** What gateways ask of the keeper of caches, on the bus. */
import type { Bus, BusSubscription } from '@penstock/bus';
import { answerCalls } from '@penstock/service';
import type { DeleteCacheRequest, ListCachesRequest } from '@penstock/artifacts';
import type { CacheKeeper } from '../caches/cache-keeper.ts';

export function answerCacheCalls(bus: Bus, keeper: CacheKeeper): BusSubscription {
  return answerCalls(bus, 'registry', {
    'cache.list': (request: ListCachesRequest) => keeper.list(request),
    'cache.delete': (request: DeleteCacheRequest) => keeper.delete(request),
  });
}
