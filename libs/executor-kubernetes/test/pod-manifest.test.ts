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
