/**
 * KEDA on a lab without nodes: its definitions, rights and account are applied as its own manifests have them, and its two programs run here, as that
 * account. It owns both processes.
 */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { kubectl, type LabPlace } from '../lab-faults.ts';

const KEDA = 'keda';
const METRICS_SERVER = 'keda-metrics-apiserver';
const FIGURES = 'v1beta1.external.metrics.k8s.io';
const PORTS = { adapter: 26_443, figures: 18_080, health: 18_081, service: 19_666 };

export class Keda {
  readonly #lab: LabPlace;
  readonly #folder: string;
  readonly #work: string;
  readonly #running: ChildProcess[] = [];

  /** `folder` is what `build.sh` has made. */
  constructor(lab: LabPlace, folder: string) {
    this.#lab = lab;
    this.#folder = folder;
    this.#work = join(lab.folder, 'keda-run');
  }

  /** `address` is one of this machine's by which the API server reaches it; loopback is none. */
  async start(address: string): Promise<void> {
    mkdirSync(join(this.#work, 'certs'), { recursive: true });
    for (const part of ['crd', 'general', 'rbac', 'service_account'])
      await this.#apply(await kubectl(this.#lab, ['kustomize', join(this.#folder, 'config', part)]));
    for (const part of ['role', 'role_binding'])
      await this.#apply(readFileSync(join(this.#folder, 'config/metrics-server', `${part}.yaml`), 'utf8'));
    const authority = this.#certificates();
    await this.#apply(metricsServer(address, authority));
    const kubeconfig = await this.#kubeconfig();
    const certs = join(this.#work, 'certs');
    this.#run('keda', kubeconfig, [
      `--cert-dir=${certs}`,
      `--metrics-bind-address=127.0.0.1:${PORTS.figures}`,
      `--health-probe-bind-address=127.0.0.1:${PORTS.health}`,
      `--metrics-service-bind-address=127.0.0.1:${PORTS.service}`,
    ]);
    this.#run('keda-adapter', kubeconfig, [
      `--secure-port=${PORTS.adapter}`,
      `--bind-address=${address}`,
      `--port=${PORTS.adapter + 1_000}`,
      `--cert-dir=${certs}`,
      `--client-ca-file=${join(certs, 'ca.crt')}`,
      `--tls-cert-file=${join(certs, 'tls.crt')}`,
      `--tls-private-key-file=${join(certs, 'tls.key')}`,
      `--metrics-service-address=127.0.0.1:${PORTS.service}`,
      `--metrics-service-grpc-authority=keda-operator.${KEDA}.svc`,
      `--authentication-kubeconfig=${kubeconfig}`,
      `--authorization-kubeconfig=${kubeconfig}`,
      `--lister-kubeconfig=${kubeconfig}`,
    ]);
  }

  /** A service of figures that nobody answers holds up the deletion of every namespace. */
  async forget(): Promise<void> {
    await kubectl(this.#lab, ['delete', 'apiservice', FIGURES, '--ignore-not-found']);
  }

  /** What has ended by itself. */
  get ended(): readonly string[] {
    return this.#running
      .filter(({ exitCode, signalCode }) => exitCode !== null || signalCode !== null)
      .map(({ spawnfile }) => spawnfile);
  }

  async stop(): Promise<void> {
    await this.forget();
    for (const child of this.#running) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
    }
  }

  /** By the server: a definition is too long for what a client would note of it. */
  async #apply(manifests: string): Promise<void> {
    await kubectl(this.#lab, ['apply', '--server-side', '--force-conflicts', '-f', '-'], manifests);
  }

  /** What KEDA makes for itself where its Pods are; the authority's, in base64. */
  #certificates(): string {
    const at = (name: string): string => join(this.#work, 'certs', name);
    const openssl = (...words: string[]): unknown => execFileSync('openssl', words, { stdio: 'pipe' });
    const fresh = ['-days', '30', '-nodes', '-newkey', 'rsa:2048'];
    openssl('req', '-x509', ...fresh, '-keyout', at('ca.key'), '-out', at('ca.crt'), '-subj', '/CN=keda');
    const names = ['keda-operator', METRICS_SERVER].map((name) => `DNS:${name}.${KEDA}.svc`).join(',');
    const signed = ['-CA', at('ca.crt'), '-CAkey', at('ca.key'), '-addext', `subjectAltName=${names}`];
    const leaf = ['-addext', 'basicConstraints=CA:FALSE', '-keyout', at('tls.key'), '-out', at('tls.crt')];
    openssl('req', '-x509', ...fresh, ...signed, ...leaf, '-subj', '/CN=keda-operator');
    return readFileSync(at('ca.crt')).toString('base64');
  }

  async #kubeconfig(): Promise<string> {
    const token = await kubectl(this.#lab, ['-n', KEDA, 'create', 'token', 'keda-operator', '--duration=4h']);
    const admin = await kubectl(this.#lab, ['config', 'view', '--raw', '--minify', '-o', 'json']);
    const { clusters } = JSON.parse(admin) as { clusters: { name: string }[] };
    const path = join(this.#work, 'kubeconfig');
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters,
      users: [{ name: KEDA, user: { token: token.trim() } }],
      contexts: [{ name: KEDA, context: { cluster: clusters[0]?.name, user: KEDA, namespace: KEDA } }],
      'current-context': KEDA,
    };
    writeFileSync(path, JSON.stringify(config), { mode: 0o600 });
    return path;
  }

  #run(name: string, kubeconfig: string, words: readonly string[]): void {
    const env = {
      PATH: process.env['PATH'],
      HOME: this.#work,
      KUBECONFIG: kubeconfig,
      POD_NAMESPACE: KEDA,
      KEDA_CLUSTER_OBJECT_NAMESPACE: KEDA,
      WATCH_NAMESPACE: '',
    };
    const child = spawn(join(this.#folder, 'bin', name), words, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    const log = createWriteStream(join(this.#work, `${name}.log`));
    child.stdout.pipe(log, { end: false });
    child.stderr.pipe(log, { end: false });
    this.#running.push(child);
  }
}

/** A service whose only endpoint is the process here. */
function metricsServer(address: string, authority: string): string {
  const metadata = { name: METRICS_SERVER, namespace: KEDA };
  const ports = [{ name: 'https', port: 443, targetPort: PORTS.adapter }];
  const slice = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { ...metadata, labels: { 'kubernetes.io/service-name': METRICS_SERVER } },
    addressType: 'IPv4',
    endpoints: [{ addresses: [address], conditions: { ready: true } }],
    ports: [{ name: 'https', port: PORTS.adapter, protocol: 'TCP' }],
  };
  const service = {
    apiVersion: 'apiregistration.k8s.io/v1',
    kind: 'APIService',
    metadata: { name: FIGURES },
    spec: {
      service: { name: METRICS_SERVER, namespace: KEDA },
      ...{ group: 'external.metrics.k8s.io', version: 'v1beta1', groupPriorityMinimum: 100, versionPriority: 100 },
      caBundle: authority,
    },
  };
  const all = [{ apiVersion: 'v1', kind: 'Service', metadata, spec: { ports } }, slice, service];
  return all.map((each) => JSON.stringify(each)).join('\n---\n');
}
