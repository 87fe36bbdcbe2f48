import type { StageSpec } from '@penstock/executor';
import { describe, expect, it } from 'vitest';
import { renderPodJob } from '../src/pod/job-text.ts';
import { refusalOf, renderPod, renderSecrets, type PodPlan } from '../src/pod/pod-manifest.ts';

const spec: StageSpec = {
  helperKey: 'key',
  commands: [{ script: 'echo secret-in-script', bindings: {} }],
  env: { TOKEN: 'secret-in-env', PENSTOCK_RUN_ID: 'r1', SERVICE_OUTPUT: '/data/run/output' },
  cwd: '/data/run/shared',
  folders: ['/data/run'],
  timeoutMs: 60_000,
  place: {
    services: [
      { name: 'db', image: { name: 'db:1' }, env: { A: '1' }, ready: 'true' },
      { name: 'web', image: { name: 'web:1' }, env: { PASSWORD: 'secret-of-service' } },
    ],
    resources: { cpu: 0.5, memoryBytes: 1024 },
  },
};
const plan: PodPlan = {
  name: 'p1',
  labels: { l: '1' },
  spec,
  image: {
    name: 'registry:5000/team/tools:1',
    auth: { username: 'u', password: 'secret-of-registry' },
    user: '1001:1002',
  },
  graceMs: 10_000,
  setupMs: 300_000,
  leaseMs: 15_000,
};

describe('a stage as a Pod', () => {
  const pod = renderPod(plan);

  it('holds no script, no environment and no credential', () => {
    expect(JSON.stringify(pod)).not.toMatch(/secret-(in|of)/);
    expect(renderPodJob(spec, []).files.get('job.new')).toContain('secret-in-env');
  });

  it('keeps to the restricted standard, in every container', () => {
    expect(pod.spec?.automountServiceAccountToken).toBe(false);
    expect(pod.spec?.securityContext).toMatchObject({
      runAsNonRoot: true,
      runAsUser: 1001,
      fsGroup: 1002,
      seccompProfile: { type: 'RuntimeDefault' },
    });
    for (const container of [...(pod.spec?.containers ?? []), ...(pod.spec?.initContainers ?? [])])
      expect(container.securityContext).toMatchObject({
        allowPrivilegeEscalation: false,
        capabilities: { drop: ['ALL'] },
      });
  });

  it("has its guard in a container and of a user of its own, and the guard's folder to be read only", () => {
    const [guard, stage] = pod.spec?.containers ?? [];
    expect([guard?.name, stage?.name]).toEqual(['guard', 'stage']);
    expect(pod.spec?.shareProcessNamespace).toBeUndefined();
    const own = renderPod({ ...plan, image: { name: 'i', user: String(guard?.securityContext?.runAsUser) } });
    expect(own.spec?.containers[0]?.securityContext?.runAsUser).not.toBe(own.spec?.securityContext?.runAsUser);
    expect(guard?.volumeMounts).toEqual([
      { name: 'guard', mountPath: '/penstock' },
      { name: 'folder-0', mountPath: '/data/run', readOnly: true },
    ]);
    expect(stage?.volumeMounts?.[0]).toEqual({ name: 'guard', mountPath: '/penstock', readOnly: true });
    // The first process of the stage comes from there, and waits for the guard to have put it there.
    expect(stage?.command?.[0]).toBe('/penstock/sh');
    expect(guard?.lifecycle?.postStart?.exec?.command?.at(-1)).toContain('/penstock/ready');
    expect(renderPod({ ...plan, guardImage: 'busybox' }).spec?.containers.map(({ image }) => image)).toEqual([
      'busybox',
      plan.image.name,
    ]);
  });

  it('leaves the cluster nothing to put into its commands', () => {
    const entrypoint = ['sh', '-c', 'echo $$ $(HOME)'];
    const service = { name: 'db', image: { name: 'db', entrypoint }, env: {} };
    const { spec: made } = renderPod({ ...plan, spec: { ...spec, place: { services: [service] } } });
    const words = [...(made?.containers ?? []), ...(made?.initContainers ?? [])].flatMap(({ command = [] }) => command);
    for (const word of words) expect(word.replaceAll('$$', '')).not.toContain('$');
    expect(made?.initContainers?.[0]?.command?.at(-1)).toBe('echo $$$$ $$(HOME)');
  });

  it('is bounded also where it asks for nothing, and reserves nothing then', () => {
    const plain = renderPod({ ...plan, spec: { ...spec, place: {} }, limits: { diskBytes: 5 } }).spec;
    expect(plain?.containers[1]?.resources).toEqual({
      limits: { memory: String(4 * 1024 ** 3), 'ephemeral-storage': '5' },
      requests: { memory: '0', 'ephemeral-storage': '0' },
    });
    expect(plain?.volumes?.[1]?.emptyDir).toEqual({ sizeLimit: '5' });
    expect(pod.spec?.containers[1]?.resources?.limits).toMatchObject({ cpu: '500m', memory: '1024' });
    expect(pod.spec?.containers[1]?.resources?.requests).not.toHaveProperty('memory');
  });

  it('never starts again, and has a last deadline behind every other', () => {
    expect(pod.spec?.restartPolicy).toBe('Never');
    expect(pod.spec?.activeDeadlineSeconds).toBe(300 + 60 + 10 + 60);
  });

  it('has services as sidecars with an environment by secret, and their names on its loopback', () => {
    expect(pod.spec?.hostAliases).toEqual([{ ip: '127.0.0.1', hostnames: ['db', 'web'] }]);
    const [db, web] = pod.spec?.initContainers ?? [];
    expect(db?.restartPolicy).toBe('Always');
    const key = web?.env?.[0]?.valueFrom?.secretKeyRef;
    const [services, pull] = renderSecrets(plan);
    expect(services?.stringData?.[key?.key ?? '']).toBe('secret-of-service');
    expect(key?.name).toBe(services?.metadata?.name);
    expect(JSON.parse(pull?.stringData?.['.dockerconfigjson'] ?? '{}')).toEqual({
      auths: { 'registry:5000/team/tools': { username: 'u', password: 'secret-of-registry' } },
    });
    expect(pod.spec?.imagePullSecrets).toEqual([{ name: pull?.metadata?.name }]);
  });

  it('refuses a user that is a name, and root', () => {
    expect(refusalOf([{ name: 'i', user: 'builder' }])).toContain("'builder'");
    expect(refusalOf([{ name: 'i', user: '0:5' }])).toContain('root');
    expect(refusalOf([{ name: 'i', user: '5' }, { name: 'i' }])).toBeUndefined();
  });
});
