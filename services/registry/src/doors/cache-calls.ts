/** What runners and gateways ask of the keeper of caches, on the bus. The runner is the one that the subject names (P10). */
import type { Bus, BusSubscription } from '@penstock/bus';
import { answerCalls } from '@penstock/service';
import type {
  BeginCacheRequest,
  DeleteCacheRequest,
  DropCacheRequest,
  FindCacheRequest,
  GetCacheRequest,
  ListCachesRequest,
  OpenUploadRequest,
  PutRequest,
} from '@penstock/artifacts';
import type { CacheKeeper } from '../caches/cache-keeper.ts';
import { runnerIn } from './artifact-calls.ts';

export function answerCacheCalls(bus: Bus, keeper: CacheKeeper): BusSubscription {
  return answerCalls(bus, 'registry', {
    'artifacts.*.cache-find': (request: FindCacheRequest, subject) => keeper.find(runnerIn(subject), request),
    'artifacts.*.cache-begin': (request: BeginCacheRequest, subject) => keeper.begin(runnerIn(subject), request),
    'artifacts.*.cache-put': (request: PutRequest, subject) => keeper.put(runnerIn(subject), request),
    'artifacts.*.cache-open': (request: OpenUploadRequest, subject) => keeper.open(runnerIn(subject), request),
    'artifacts.*.cache-get': (request: GetCacheRequest, subject) => keeper.get(runnerIn(subject), request),
    'artifacts.*.cache-drop': (request: DropCacheRequest, subject) => keeper.drop(runnerIn(subject), request),
    'cache.list': (request: ListCachesRequest) => keeper.list(request),
    'cache.delete': (request: DeleteCacheRequest) => keeper.delete(request),
  });
}
