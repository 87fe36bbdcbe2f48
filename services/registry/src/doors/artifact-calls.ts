/** What runners and gateways ask of the keeper of artifacts, on the bus. The runner is the one that the subject names (P10). */
import type { Bus, BusSubscription } from '@penstock/bus';
import { answerCalls } from '@penstock/service';
import type {
  BeginRequest,
  GetRequest,
  OpenUploadRequest,
  PartRequest,
  PutRequest,
  SealRequest,
  UsageRequest,
} from '@penstock/artifacts';
import type { ArtifactKeeper } from '../artifacts/keeper.ts';

/** `svc.registry.artifacts.<runner>.<verb>` */
const RUNNER_TOKEN = 3;

export function answerArtifactCalls(bus: Bus, keeper: ArtifactKeeper): BusSubscription {
  return answerCalls(bus, 'registry', {
    'artifacts.*.begin': (request: BeginRequest, subject) => keeper.begin(runnerIn(subject), request),
    'artifacts.*.put': (request: PutRequest, subject) => keeper.put(runnerIn(subject), request),
    'artifacts.*.open': (request: OpenUploadRequest, subject) => keeper.open(runnerIn(subject), request),
    'artifacts.*.seal': (request: SealRequest, subject) => keeper.seal(runnerIn(subject), request),
    'artifacts.*.get': (request: GetRequest, subject) => keeper.get(runnerIn(subject), request),
    'artifact.get': (request: PartRequest) => keeper.read(request),
    'artifact.usage': (request: UsageRequest) => keeper.usage(request),
  });
}

export function runnerIn(subject: string): string {
  return subject.split('.')[RUNNER_TOKEN] ?? '';
}
