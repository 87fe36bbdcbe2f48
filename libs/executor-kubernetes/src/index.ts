export { openCluster } from './cluster/cluster.ts';
export { KubernetesExecutor } from './executor.ts';
export { endEarlierPods } from './sweep.ts';
