/**
 * A namespace of the cluster that SERVICE_TEST_KUBECONFIG names, made as `deploy/k8s/executor.yaml` says, and the account in it that an
 * executor is to get along with. Without a cluster nothing of it is run, and that is reported.
 */
import { randomUUID } from 'node:crypto';
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  CoreV1Api,
  KubeConfig,
  KubernetesObjectApi,
  loadAllYaml,
  type KubernetesObject,
} from '@kubernetes/client-node';
import { bootClockMs, type StageSpec } from '@penstock/executor';
import { openCluster, type Cluster } from '../../src/cluster/cluster.ts';
import { KubernetesExecutor, type KubernetesExecutorOptions } from '../../src/executor.ts';

const MANIFEST = new URL('../../../../deploy/k8s/executor.yaml', import.meta.url);

/** What busybox has is enough. */
export const IMAGE = process.env['SERVICE_TEST_K8S_IMAGE'] ?? 'busybox';

export interface Lab {
  readonly namespace: string;
  /** Of the account with the least rights. */
  readonly kubeconfig: string;
  /** As the executor has it. */
  readonly cluster: Cluster;
  /** With all rights. */
  readonly api: CoreV1Api;
  readonly objects: KubernetesObjectApi;
  executor(more?: Partial<KubernetesExecutorOptions>): KubernetesExecutor;
  /** The names of Pods that are there and not being deleted. */
  pods(): Promise<string[]>;
  close(): Promise<void>;
}

/** Null: there is none, which is reported. */
export async function labForTests(what: string): Promise<Lab | null> {
  const file = process.env['SERVICE_TEST_KUBECONFIG'];
  if (file === undefined) {
    const notRunFile = process.env['PENSTOCK_NOT_RUN_FILE'];
    if (notRunFile !== undefined) appendFileSync(notRunFile, `${what}: SERVICE_TEST_KUBECONFIG names no cluster\n`);
    return null;
  }
  const config = new KubeConfig();
  config.loadFromFile(file);
  const namespace = `penstock-test-${randomUUID().slice(0, 8)}`;
  const objects = KubernetesObjectApi.makeApiClient(config);
  const text = readFileSync(MANIFEST, 'utf8').replaceAll('penstock-stages', namespace);
  for (const object of loadAllYaml(text) as KubernetesObject[]) await objects.create(object);
  const api = config.makeApiClient(CoreV1Api);
  const { status } = await api.createNamespacedServiceAccountToken({
    namespace,
    name: 'penstock-runner',
    body: { spec: { audiences: [], expirationSeconds: 3_600 } },
  });
  const folder = mkdtempSync(join(tmpdir(), 'penstock-lab-'));
  const kubeconfig = join(folder, 'kubeconfig');
  writeFileSync(kubeconfig, accountConfig(config, status?.token ?? ''), { mode: 0o600 });
  const cluster = openCluster({ namespace, kubeconfig });
  return {
    namespace,
    kubeconfig,
    cluster,
    api,
    objects,
    executor: (more) =>
      new KubernetesExecutor({
        cluster,
        runnerId: 'lab',
        fence: () => bootClockMs() + 12_000,
        fenceMs: 3_000,
        leaseMs: 15_000,
        sessionOver: new Promise(() => {}),
        image: IMAGE,
        setupMs: 60_000,
        hasNetworkPolicies: false,
        warn: () => {},
        ...more,
      }),
    pods: async () => {
      const { items } = await api.listNamespacedPod({ namespace });
      return items
        .filter(({ metadata }) => metadata?.deletionTimestamp === undefined)
        .map(({ metadata }) => metadata?.name ?? '');
    },
    close: async () => {
      await api.deleteNamespace({ name: namespace });
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A stage of one command. */
export function stageOf(script: string, more: Partial<StageSpec> = {}): StageSpec {
  return {
    helperKey: 'key',
    commands: [{ script, bindings: {} }],
    env: {},
    cwd: '/',
    timeoutMs: 60_000,
    graceMs: 1_000,
    ...more,
  };
}

function accountConfig(config: KubeConfig, token: string): string {
  const cluster = config.getCurrentCluster();
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: 'lab',
        cluster: {
          server: cluster?.server,
          ...(cluster?.caData === undefined ? {} : { 'certificate-authority-data': cluster.caData }),
          ...(cluster?.caFile === undefined ? {} : { 'certificate-authority': cluster.caFile }),
        },
      },
    ],
    users: [{ name: 'runner', user: { token } }],
    contexts: [{ name: 'lab', context: { cluster: 'lab', user: 'runner' } }],
    'current-context': 'lab',
  });
}
