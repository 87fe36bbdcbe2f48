/** How many Pods a StatefulSet or a Deployment is to have: its `scale`, and nothing else of it. */
import { AppsV1Api, PatchStrategy, setHeaderOptions, type V1Scale } from '@kubernetes/client-node';
import { called, kubeConfigOf } from './cluster.ts';

export interface ScaleTarget {
  /** Throws ClusterError. */
  read(): Promise<number>;
  /** Throws ClusterError. */
  write(replicas: number): Promise<void>;
}

export interface ScaleTargetSettings {
  readonly namespace: string;
  readonly kind: 'statefulset' | 'deployment';
  readonly name: string;
  /** Absent: as `kubectl` finds it, and in a Pod its service account. */
  readonly kubeconfig?: string | undefined;
}

/** Throws NoCluster. */
export function openScaleTarget({ namespace, kind, name, kubeconfig }: ScaleTargetSettings): ScaleTarget {
  const api = kubeConfigOf(kubeconfig).makeApiClient(AppsV1Api);
  const isSet = kind === 'statefulset';
  const merge = setHeaderOptions('Content-Type', PatchStrategy.MergePatch);
  return {
    async read() {
      const scale: V1Scale = await called(
        `reading how many Pods ${kind}/${name} is to have`,
        isSet
          ? api.readNamespacedStatefulSetScale({ namespace, name })
          : api.readNamespacedDeploymentScale({ namespace, name }),
      );
      return scale.spec?.replicas ?? 0;
    },
    async write(replicas) {
      const patch = { namespace, name, body: { spec: { replicas } } };
      await called(
        `saying how many Pods ${kind}/${name} is to have`,
        isSet ? api.patchNamespacedStatefulSetScale(patch, merge) : api.patchNamespacedDeploymentScale(patch, merge),
      );
    },
  };
}
