/** What a Pod's status says about its stage, as far as that counts (P36): phases and absence prove nothing, so they are no part of it. */
import type { V1ContainerStatus, V1Pod } from '@kubernetes/client-node';
import { GUARD_CONTAINER, STAGE_CONTAINER } from './pod-manifest.ts';

type StageContainer =
  | { readonly kind: 'none' }
  | { readonly kind: 'running' }
  | { readonly kind: 'terminated'; readonly code: number; readonly reason: string; readonly message: string };

interface PodFault {
  readonly reason: 'image' | 'service';
  readonly message: string;
  /** False: it may pass. */
  readonly isFinal: boolean;
}

interface ServiceState {
  readonly name: string;
  /** Its container runs; where it has a test, it may still fail that. */
  readonly isRunning: boolean;
  readonly isReady: boolean;
}

export interface PodState {
  readonly uid: string;
  readonly stage: StageContainer;
  readonly guard: StageContainer;
  /** What keeps it from starting. */
  readonly fault?: PodFault | undefined;
  /** Why it waits, as far as the cluster says. */
  readonly waitsFor?: string | undefined;
  /** By whom and why it was, or is being, taken away; its own end is no such thing. */
  readonly takenAway?: string | undefined;
  /** It has written more than its disk: that was the stage's own doing. */
  readonly overuse?: string | undefined;
  readonly isDeleting: boolean;
  /** `activeDeadlineSeconds` has ended it. */
  readonly isPastDeadline: boolean;
  readonly services: readonly ServiceState[];
}

const PULL_REASONS = new Set(['ErrImagePull', 'ImagePullBackOff', 'RegistryUnavailable', 'ImageInspectError']);
const FINAL_PULL_REASONS = new Set(['InvalidImageName', 'ErrImageNeverPull', 'SignatureValidationFailed']);
/** Of a pull: the registry has answered, and will say the same again. */
const FINAL_PULL_MESSAGE =
  /not found|manifest unknown|name unknown|unauthorized|authorization failed|authentication required|denied|forbidden|no match for platform|invalid reference/i;
const START_REASONS = new Set([
  'StartError',
  'ContainerCannotRun',
  'RunContainerError',
  'CreateContainerError',
  'PostStartHookError',
]);
/** Of a Pod that the kubelet has refused or ended; nothing of the stage's own doing. */
const REFUSED =
  /^(Evicted|Preempting|NodeLost|NodeShutdown|Shutdown|Terminated|UnexpectedAdmissionError|NodeAffinity|NodePorts|Outof\w+|OutOf\w+|NodeName|TaintToleration|PodHasNodeName)$/;
/** Of an eviction by what the Pod itself has written; a node that is short of disk says something else. */
const OVERUSE =
  /EmptyDir volume .* exceeds|exceeded its local ephemeral storage limit|exceeds the total limit of containers/;
const MESSAGE_CHARACTERS_MAX = 500;
const SERVICE_PREFIX = 'service-';

export function stateOf(pod: V1Pod): PodState {
  const { metadata, status } = pod;
  const inits = status?.initContainerStatuses ?? [];
  const mains = status?.containerStatuses ?? [];
  const own = mains.find(({ name }) => name === STAGE_CONTAINER);
  const isDeleting = metadata?.deletionTimestamp !== undefined && metadata.deletionTimestamp !== null;
  return {
    uid: metadata?.uid ?? '',
    stage: stageOf(own),
    guard: stageOf(mains.find(({ name }) => name === GUARD_CONTAINER)),
    fault: [...inits, ...mains].map(faultOf).find((fault) => fault !== undefined),
    waitsFor: waitOf(pod, [...inits, ...mains]),
    takenAway: takenAwayOf(pod),
    overuse: overuseOf(pod),
    isDeleting,
    isPastDeadline: status?.reason === 'DeadlineExceeded',
    services: inits.map((each) => ({
      name: serviceName(each),
      isRunning: each.state?.running !== undefined,
      isReady: each.started === true,
    })),
  };
}

function stageOf(own: V1ContainerStatus | undefined): StageContainer {
  const { running, terminated } = own?.state ?? {};
  if (terminated !== undefined)
    return {
      kind: 'terminated',
      code: terminated.exitCode,
      reason: terminated.reason ?? '',
      message: short(terminated.message),
    };
  return running === undefined ? { kind: 'none' } : { kind: 'running' };
}

function faultOf(container: V1ContainerStatus): PodFault | undefined {
  const { state, lastState, image, restartCount } = container;
  const { waiting, terminated } = state ?? {};
  const reason = waiting?.reason ?? '';
  const message = short(waiting?.message);
  if (FINAL_PULL_REASONS.has(reason) || PULL_REASONS.has(reason))
    return {
      reason: 'image',
      message: `the image ${image} cannot be had: ${message === '' ? reason : message}`,
      isFinal: FINAL_PULL_REASONS.has(reason) || FINAL_PULL_MESSAGE.test(message),
    };
  const failed = START_REASONS.has(terminated?.reason ?? '') ? terminated : undefined;
  if (failed !== undefined || START_REASONS.has(reason)) {
    const why = failed === undefined ? message : short(failed.message);
    return { reason: 'image', message: `nothing could be started in the image ${image}: ${why}`, isFinal: true };
  }
  if (!container.name.startsWith(SERVICE_PREFIX)) return undefined;
  const ended = terminated ?? (restartCount > 0 ? lastState?.terminated : undefined);
  return ended === undefined
    ? undefined
    : {
        reason: 'service',
        message: `the service '${serviceName(container)}' ended with exit code ${ended.exitCode} before the stage did`,
        isFinal: true,
      };
}

/** In the words of the cluster, for a remark. */
function waitOf(pod: V1Pod, containers: readonly V1ContainerStatus[]): string | undefined {
  const scheduled = (pod.status?.conditions ?? []).find(({ type }) => type === 'PodScheduled');
  if (scheduled?.status === 'False')
    return `it could not be scheduled: ${short(scheduled.message ?? scheduled.reason)}`;
  for (const { name, state } of containers) {
    const { reason, message } = state?.waiting ?? {};
    if (reason !== undefined && reason !== 'PodInitializing' && reason !== 'ContainerCreating')
      return `its container '${name}' waits: ${reason}${message === undefined ? '' : ` (${short(message)})`}`;
  }
  return undefined;
}

function takenAwayOf({ metadata, status }: V1Pod): string | undefined {
  const reason = status?.reason ?? '';
  if (REFUSED.test(reason)) return `${reason}: ${short(status?.message)}`;
  const disruption = (status?.conditions ?? []).find(({ type }) => type === 'DisruptionTarget');
  if (disruption?.status === 'True') return `${disruption.reason ?? 'disruption'}: ${short(disruption.message)}`;
  return metadata?.deletionTimestamp === undefined || metadata.deletionTimestamp === null
    ? undefined
    : 'its Pod was deleted';
}

function overuseOf({ status }: V1Pod): string | undefined {
  const isOwn = status?.reason === 'Evicted' && OVERUSE.test(status.message ?? '');
  return isOwn ? short(status.message) : undefined;
}

function serviceName({ name }: V1ContainerStatus): string {
  return name.startsWith(SERVICE_PREFIX) ? name.slice(SERVICE_PREFIX.length) : name;
}

function short(text: string | undefined): string {
  const line = (text ?? '').replaceAll(/\s+/g, ' ').trim();
  return line.length > MESSAGE_CHARACTERS_MAX ? `${line.slice(0, MESSAGE_CHARACTERS_MAX)}…` : line;
}
