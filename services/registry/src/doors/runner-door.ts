/**
 * What a runner asks of those who keep the bytes of artifacts and caches, by verb: on the bus, where the subject names the runner
 * (P10), and by the runner of this very process, whose bytes need not pass the broker.
 */
import type { Bus, BusSubscription } from '@penstock/bus';
import { NotFound } from '@penstock/errors';
import { answerCalls } from '@penstock/service';
import type {
  BeginCacheRequest,
  BeginRequest,
  DropCacheRequest,
  FindCacheRequest,
  GetCacheRequest,
  GetRequest,
  OpenUploadRequest,
  PutRequest,
  SealRequest,
  UploadPart,
} from '@penstock/artifacts';
import { decoded, type IncomingUploads } from '../artifacts/incoming.ts';
import type { ArtifactKeeper } from '../artifacts/keeper.ts';
import type { CacheKeeper } from '../caches/cache-keeper.ts';

type Handler = (runner: string, request: never) => unknown;
export type RunnerVerbs = Readonly<Record<string, Handler>>;

/** `svc.registry.artifacts.<runner>.<verb>` */
const RUNNER_TOKEN = 3;
const UPLOAD = 'upload.';

export function runnerVerbs(artifacts: ArtifactKeeper, caches: CacheKeeper): RunnerVerbs {
  return {
    begin: (runner, request: BeginRequest) => artifacts.begin(runner, request),
    put: (runner, request: PutRequest) => artifacts.put(runner, request),
    open: (runner, request: OpenUploadRequest) => artifacts.open(runner, request),
    seal: (runner, request: SealRequest) => artifacts.seal(runner, request),
    get: (runner, request: GetRequest) => artifacts.get(runner, request),
    'cache-find': (runner, request: FindCacheRequest) => caches.find(runner, request),
    'cache-begin': (runner, request: BeginCacheRequest) => caches.begin(runner, request),
    'cache-put': (runner, request: PutRequest) => caches.put(runner, request),
    'cache-open': (runner, request: OpenUploadRequest) => caches.open(runner, request),
    'cache-get': (runner, request: GetCacheRequest) => caches.get(runner, request),
    'cache-drop': (runner, request: DropCacheRequest) => caches.drop(runner, request),
  };
}

export function answerRunners(bus: Bus, verbs: RunnerVerbs): BusSubscription {
  const handlers = Object.entries(verbs).map(([verb, handle]) => [
    `artifacts.*.${verb}`,
    (request: never, subject: string) => handle(subject.split('.')[RUNNER_TOKEN] ?? '', request),
  ]);
  return answerCalls(bus, 'registry', Object.fromEntries(handlers));
}

/** Of the runner of this process: a verb, or `upload.<id>` for a part of what `open` has begun. */
export async function answerOwnRunner(
  verbs: RunnerVerbs,
  incoming: IncomingUploads,
  runner: string,
  verb: string,
  body: unknown,
): Promise<unknown> {
  if (verb.startsWith(UPLOAD)) {
    const { offset, data } = body as UploadPart;
    return await incoming.take(verb.slice(UPLOAD.length), offset, decoded(data));
  }
  const handle = Object.hasOwn(verbs, verb) ? verbs[verb] : undefined;
  if (handle === undefined) throw new NotFound(`There is no '${verb.slice(0, 40)}' to ask for.`);
  return await handle(runner, body as never);
}
