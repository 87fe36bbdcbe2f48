/**
 * `npm run bench:k8s -- --kubeconfig <file> [--kubectl kubectl] [--namespace penstock-stages] [--image busybox] [--rounds 7]`: how long a stage that does nothing
 * takes as a Pod, beside a bare `kubectl run` of the same image, by turns on the same cluster.
 */
import { execFile } from 'node:child_process';
import { parseArgs, promisify } from 'node:util';
import { bootMs } from '@penstock/async';
import { KubernetesExecutor, openCluster } from '@penstock/executor-kubernetes';

const run = promisify(execFile);
const text = { type: 'string' } as const;
const { values } = parseArgs({
  options: {
    kubeconfig: text,
    kubectl: { ...text, default: 'kubectl' },
    namespace: { ...text, default: 'penstock-stages' },
    image: { ...text, default: 'busybox' },
    rounds: { ...text, default: '7' },
  },
});
const { kubeconfig, kubectl, namespace, image } = values;
if (kubeconfig === undefined) throw new Error('--kubeconfig names the cluster');

const executor = new KubernetesExecutor({
  cluster: openCluster({ namespace, kubeconfig }),
  runnerId: 'bench',
  leaseMs: 15_000,
  fence: () => bootMs() + 12_000,
  fenceMs: 3_000,
  sessionOver: new Promise(() => {}),
  image,
  setupMs: 60_000,
  hasNetworkPolicies: false,
  warn: () => {},
});
const spec = { helperKey: 'bench', commands: [{ script: 'true', bindings: {} }], env: {}, cwd: '/', timeoutMs: 60_000 };

async function asStage(): Promise<void> {
  const exit = await executor.start(spec, { write: () => {} }).ended;
  if (exit.kind !== 'exit' || exit.code !== 0) throw new Error(JSON.stringify(exit));
}

async function bare(round: number): Promise<void> {
  const name = `bare-${process.pid}-${round}`;
  const own = ['--kubeconfig', kubeconfig ?? '', '-n', 'default'];
  const words = [
    'run',
    name,
    `--image=${image}`,
    '--image-pull-policy=IfNotPresent',
    '--restart=Never',
    '--attach',
    '--quiet',
  ];
  try {
    await run(kubectl, [...own, ...words, '--', 'true'], { timeout: 60_000 });
  } finally {
    await run(kubectl, [...own, 'delete', 'pod', name, '--wait=false'], { timeout: 60_000 });
  }
}

async function msOf(work: () => Promise<void>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}

const median = (all: readonly number[]): number => all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)] ?? 0;
const stages: number[] = [];
const bares: number[] = [];
await asStage();
for (let round = 0; round < Number(values.rounds); round += 1) {
  stages.push(await msOf(asStage));
  bares.push(await msOf(() => bare(round)));
}
await executor.close();
const times = (all: readonly number[]): string => all.map((ms) => Math.round(ms)).join(' ');
process.stdout.write(`a stage as a Pod  ${Math.round(median(stages))} ms   (${times(stages)})\n`);
process.stdout.write(`kubectl run       ${Math.round(median(bares))} ms   (${times(bares)})\n`);
process.stdout.write(`ratio             ${(median(stages) / median(bares)).toFixed(2)}\n`);
