/** `k8s/` as an administrator applies it: built by kustomize, where it is on the PATH (or kubectl, which has it inside). */
import { execFileSync } from 'node:child_process';
import { appendFileSync, cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DEMAND_QUERY, unknownVariables } from '@penstock/config';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { temporaryFolder } from '../support/server.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const KINDS = ['Deployment', 'StatefulSet', 'Job'];
/** What a runner may take to end its stages, in seconds. */
const DRAIN_SECS = 600;

interface Mount {
  readonly name: string;
  readonly mountPath: string;
  readonly subPathExpr?: string;
}
interface Container {
  readonly name: string;
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
  readonly envFrom?: readonly { readonly configMapRef: { readonly name: string } }[];
  readonly volumeMounts?: readonly Mount[];
  readonly readinessProbe?: unknown;
  readonly livenessProbe?: unknown;
  readonly resources?: unknown;
  readonly securityContext?: object;
}
interface PodSpec {
  readonly terminationGracePeriodSeconds?: number;
  readonly automountServiceAccountToken?: boolean;
  readonly securityContext?: object;
  readonly containers: readonly Container[];
  readonly volumes?: readonly { readonly name: string; readonly secret?: { readonly secretName: string } }[];
}
interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: Record<string, string> };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec: {
    readonly template: { readonly spec: PodSpec; readonly metadata: { readonly labels: Record<string, string> } };
    readonly selector?: { readonly matchLabels: Record<string, string> };
    readonly podSelector?: object;
    readonly policyTypes?: readonly string[];
  };
}

/** The first kustomize that knows what the files use is 5.0, which is in kubectl 1.27. */
const BUILDERS: readonly {
  readonly command: readonly [file: string, ...args: string[]];
  readonly version: readonly string[];
  readonly isNewEnough: (said: string) => boolean;
}[] = [
  {
    command: ['kustomize', 'build'],
    version: ['version'],
    isNewEnough: (said) => Number(/v(\d+)\./.exec(said)?.[1] ?? 0) >= 5,
  },
  {
    command: ['kubectl', 'kustomize'],
    version: ['version', '--client', '--output=json'],
    isNewEnough: (said) => Number(/"gitVersion": "v1\.(\d+)/.exec(said)?.[1] ?? 0) >= 27,
  },
];

const builder = BUILDERS.find(({ command: [file], version, isNewEnough }) => {
  try {
    return isNewEnough(execFileSync(file, version, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }));
  } catch {
    return false;
  }
})?.command;
const notRun = process.env['PENSTOCK_NOT_RUN_FILE'];
if (builder === undefined && notRun !== undefined)
  appendFileSync(notRun, 'the manifests in k8s/: neither kustomize 5 nor kubectl 1.27 or newer is on the PATH\n');

describe.runIf(builder !== undefined)('the overlay `single`', () => {
  const temporary = temporaryFolder();
  let manifests: readonly Manifest[];
  afterAll(() => temporary.remove());

  beforeAll(() => {
    for (const folder of ['deploy', 'k8s'])
      cpSync(join(ROOT, folder), join(temporary.path, folder), {
        recursive: true,
        filter: (path) => !/\/(secrets|settings\.env|node_modules)$/.test(path),
      });
    const overlay = join(temporary.path, 'k8s/overlays/single');
    mkdirSync(overlay, { recursive: true });
    execFileSync('sh', [join(temporary.path, 'k8s/setup.sh'), 'https://ci.example.org'], {
      env: {
        ...process.env,
        PENSTOCK_GENERATE: `${process.execPath} ${join(ROOT, 'deploy/nats/generate.ts')} --out ${overlay}/secrets/nats`,
      },
      stdio: 'pipe',
    });
    const [file, ...args] = builder ?? [''];
    const text = execFileSync(file, [...args, overlay], { encoding: 'utf8', maxBuffer: 16 * 1024 * 1024 });
    manifests = parseAllDocuments(text).map((document) => document.toJS() as Manifest);
  }, 120_000);

  const workloads = (): readonly Manifest[] => manifests.filter(({ kind }) => KINDS.includes(kind));
  const ours = (): readonly Manifest[] =>
    workloads().filter(({ metadata }) => metadata.labels?.['app.kubernetes.io/part-of'] === 'penstock');

  it('has every service, a broker and a database', () => {
    expect(
      workloads()
        .map(({ metadata }) => metadata.name)
        .toSorted(),
    ).toEqual([
      'auth',
      'broker-setup',
      'gateway',
      'mongodb',
      'nats',
      'registry',
      'runner',
      'scheduler',
      'webhook-ingest',
    ]);
  });

  it('runs every container as an ordinary user on a read-only root, without capabilities', () => {
    for (const { metadata, spec } of workloads()) {
      expect(spec.template.spec.securityContext, metadata.name).toMatchObject({
        runAsNonRoot: true,
        seccompProfile: { type: 'RuntimeDefault' },
      });
      for (const container of spec.template.spec.containers)
        expect(container.securityContext, metadata.name).toMatchObject({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
    }
  });

  it('gives an account of the cluster to runners alone', () => {
    const holders = workloads().filter(({ spec }) => spec.template.spec.automountServiceAccountToken !== false);
    expect(holders.map(({ metadata }) => metadata.name)).toEqual(['runner']);
  });

  it('gives every variable that is set a meaning, and a file to every secret', () => {
    for (const { metadata, spec } of ours()) {
      const [container] = spec.template.spec.containers;
      const { env = [], volumeMounts = [] } = container ?? {};
      const files = env.filter(({ name }) => name.endsWith('_FILE'));
      expect(unknownVariables(Object.fromEntries(env.map(({ name }) => [name.replace(/_FILE$/, ''), ''])))).toEqual([]);
      const volume = spec.template.spec.volumes?.find(({ name }) => name === 'secrets')?.secret?.secretName;
      const secret = manifests.find(({ kind, metadata: { name } }) => kind === 'Secret' && name === volume);
      const mount = volumeMounts.find(({ name }) => name === 'secrets');
      const wanted = files.map(({ value = '' }) => value.slice('/run/secrets/penstock/'.length)).toSorted();
      const given = Object.keys(secret?.data ?? {}).toSorted();
      expect([metadata.name, mount?.subPathExpr === undefined ? given : ['nats']]).toEqual([
        metadata.name,
        [...new Set(wanted)],
      ]);
    }
  });

  it('gives a runner its own password of all runners’ and no other', () => {
    const runner = ours().find(({ metadata }) => metadata.name === 'runner');
    const mounts = runner?.spec.template.spec.containers[0]?.volumeMounts?.filter(({ name }) => name === 'secrets');
    expect(mounts).toEqual([
      {
        name: 'secrets',
        mountPath: '/run/secrets/penstock/nats',
        subPathExpr: 'nats-$(SERVICE_RUNNER_ID)',
        readOnly: true,
      },
    ]);
  });

  it('gives the settings of the ConfigMap to every service, runners too', () => {
    const without = ours()
      .filter(({ kind }) => kind !== 'Job')
      .filter(
        ({ spec }) => spec.template.spec.containers[0]?.envFrom?.[0]?.configMapRef.name.startsWith('penstock') !== true,
      );
    expect(without.map(({ metadata }) => metadata.name)).toEqual([]);
  });

  it('probes every service, and gives a runner longer to end than its stages get', () => {
    for (const { kind, metadata, spec } of ours().filter((manifest) => manifest.kind !== 'Job')) {
      const [container] = spec.template.spec.containers;
      expect(container, `${kind} ${metadata.name}`).toMatchObject({
        readinessProbe: { httpGet: { path: '/ready', port: 'internal' } },
        livenessProbe: { httpGet: { path: '/health', port: 'internal' } },
        // A slow start is no reason for another one.
        startupProbe: { httpGet: { path: '/health', port: 'internal' }, timeoutSeconds: 5, failureThreshold: 60 },
      });
      const graceMin = metadata.name === 'runner' ? DRAIN_SECS + 1 : 45;
      expect(spec.template.spec.terminationGracePeriodSeconds, metadata.name).toBeGreaterThanOrEqual(graceMin);
    }
  });

  it('takes the scaler, whose account may read and write how many runners there are, and nothing else, and says no number of its own', () => {
    const overlay = join(temporary.path, 'k8s/overlays/scaled');
    mkdirSync(overlay, { recursive: true });
    writeFileSync(
      join(overlay, 'kustomization.yaml'),
      'resources: [../single]\ncomponents: [../../components/scaler, ../../components/keda]\n',
    );
    const [file, ...args] = builder ?? [''];
    const text = execFileSync(file, [...args, overlay], { encoding: 'utf8', maxBuffer: 16 * 1024 * 1024 });
    const built = parseAllDocuments(text).map((document) => document.toJS() as Manifest);
    const rules = built.filter(({ kind, metadata: { name } }) => kind === 'Role' && name === 'scaler');
    expect(rules).toMatchObject([
      {
        rules: [
          {
            apiGroups: ['apps'],
            resources: ['statefulsets/scale'],
            resourceNames: ['runner'],
            verbs: ['get', 'patch'],
          },
        ],
      },
    ]);
    const scaler = built.find(({ kind, metadata: { name } }) => kind === 'Deployment' && name === 'scaler');
    const [container] = scaler?.spec.template.spec.containers ?? [];
    expect(container).toMatchObject({
      args: ['service', 'scaler'],
      securityContext: { readOnlyRootFilesystem: true, allowPrivilegeEscalation: false },
    });
    expect(unknownVariables(Object.fromEntries((container?.env ?? []).map(({ name }) => [name, ''])))).toEqual([]);
    const asked = built.find(({ kind }) => kind === 'ScaledObject') as { spec: object } | undefined;
    expect(asked?.spec).toMatchObject({ triggers: [{ metadata: { query: DEMAND_QUERY } }] });
    const numbered = ({ kind, metadata: { name }, spec }: Manifest): boolean =>
      kind === 'StatefulSet' && name === 'runner' && 'replicas' in spec;
    expect([manifests.some(numbered), built.some(numbered)]).toEqual([true, false]);
  });

  it('closes the network but for what a policy names', () => {
    const policies = manifests.filter(
      ({ kind, metadata }) => kind === 'NetworkPolicy' && metadata.namespace === 'penstock',
    );
    expect(policies.map(({ spec }) => spec)).toContainEqual({ podSelector: {}, policyTypes: ['Ingress', 'Egress'] });
  });
});
