export { openCluster } from './cluster/cluster.ts';
export { KubernetesExecutor } from './executor.ts';
export { pastOf } from './pod-notes.ts';
export { endEarlierPods } from './sweep.ts';
