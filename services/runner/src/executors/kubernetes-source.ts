/** Pods of a cluster: where a namespace is named for them. The client of the cluster is heavy, and loaded where it is used only. */
import { FENCE_MS } from '@penstock/bus';
import type { ExecutorSource } from './executor-source.ts';

export interface KubernetesSettings {
  readonly namespace: string;
  /** Absent: as `kubectl` finds it, and in a Pod its service account. */
  readonly kubeconfig?: string | undefined;
  /** For stages that name none. */
  readonly image?: string | undefined;
  /** Of the guards; absent: the stage's own. */
  readonly guardImage?: string | undefined;
  readonly setupMs: number;
  readonly hasNetworkPolicies: boolean;
}

interface Variables {
  readonly k8sNamespace: string | undefined;
  readonly k8sKubeconfig: string | undefined;
  readonly k8sImage: string | undefined;
  readonly k8sGuardImage: string | undefined;
  readonly k8sSetupTimeout: number;
  readonly k8sNetworkPolicies: boolean;
}

/** Undefined: no namespace is named. */
export function kubernetesSettings(variables: Variables): KubernetesSettings | undefined {
  const { k8sNamespace: namespace, k8sKubeconfig: kubeconfig, k8sImage: image } = variables;
  if (namespace === undefined) return undefined;
  return {
    namespace,
    kubeconfig,
    image,
    guardImage: variables.k8sGuardImage,
    setupMs: variables.k8sSetupTimeout,
    hasNetworkPolicies: variables.k8sNetworkPolicies,
  };
}

/** @throws NoCluster where the settings name none that can be used */
export async function findKubernetes(
  settings: KubernetesSettings | undefined,
  isWanted: boolean,
): Promise<ExecutorSource | string | null> {
  if (settings === undefined) return isWanted ? 'SERVICE_K8S_NAMESPACE names no namespace' : null;
  const { endEarlierPods, KubernetesExecutor, openCluster, pastOf } = await import('@penstock/executor-kubernetes');
  const cluster = openCluster(settings);
  return {
    kind: 'kubernetes',
    outlives: true,
    create: ({ runnerId, leaseMs, log, limits, limitsSet }, guard) =>
      new KubernetesExecutor({
        cluster,
        runnerId,
        leaseMs,
        fence: () => guard.deadlineMs,
        fenceMs: FENCE_MS,
        sessionOver: guard.gone,
        image: settings.image,
        guardImage: settings.guardImage,
        limits: limitsSet,
        leavingBytesMax: limits.diskBytes,
        setupMs: settings.setupMs,
        hasNetworkPolicies: settings.hasNetworkPolicies,
        warn: (error, message) => log.warn({ err: error }, message),
      }),
    sweep: ({ runnerId, leaseMs, log }, kept) =>
      endEarlierPods({
        cluster,
        runnerId,
        leaseMs,
        warn: (error, message) => log.warn({ err: error }, message),
        kept: kept.flatMap((notes) => pastOf(notes)?.name ?? []),
      }),
  };
}
