export { openCluster } from './cluster/cluster.ts';
export { openScaleTarget, type ScaleTarget, type ScaleTargetSettings } from './cluster/scale.ts';
export { KubernetesExecutor } from './executor.ts';
export { pastOf } from './pod-notes.ts';
export { endEarlierPods } from './sweep.ts';
