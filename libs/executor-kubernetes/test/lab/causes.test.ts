/** How a stage can end in a cluster, and what is left of it: on a real one (`lab.ts`). */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PatchStrategy, setHeaderOptions, type V1NetworkPolicy } from '@kubernetes/client-node';
import { bootClockMs } from '@penstock/executor';
import { RecordingSink } from '@penstock/executor/testing';
import { afterAll, describe, expect, it } from 'vitest';
import type { KubernetesExecutor } from '../../src/executor.ts';
import { endEarlierPods } from '../../src/sweep.ts';
import { IMAGE, labForTests, stageOf, type Lab } from './lab.ts';

const found = await labForTests('the causes of endings on Kubernetes');

/** Of what is run only where there is one. */
const lab = found as Lab;
const executor = found?.executor() as KubernetesExecutor;
afterAll(async () => {
  await found?.close();
});
const untilNone = (): Promise<void> => expect.poll(() => lab.pods(), { timeout: 30_000 }).toEqual([]);
/** The one Pod that is there. */
async function podOf(): Promise<string> {
  await expect.poll(() => lab.pods(), { timeout: 20_000 }).toHaveLength(1);
  return (await lab.pods())[0] ?? '';
}

describe.runIf(found !== null)('a stage in a Pod', () => {
  afterAll(() => executor.close());

  it('has the files of its folders, and its outputs come back', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'penstock-lab-'));
    mkdirSync(join(folder, 'shared/deep/er'), { recursive: true });
    writeFileSync(join(folder, 'shared/deep/er/file'), 'x'.repeat(3_000_000));
    writeFileSync(join(folder, 'output'), '');
    const sink = new RecordingSink();
    const env = { SERVICE_OUTPUT: join(folder, 'output'), PENSTOCK_STAGE: 'files' };
    const spec = stageOf('wc -c <deep/er/file; echo "a=1" >>$SERVICE_OUTPUT; id -u; touch new', {
      env,
      cwd: join(folder, 'shared'),
      folders: [folder],
    });
    expect(await executor.start(spec, sink).ended).toEqual({ kind: 'exit', code: 0 });
    expect(sink.text()).toBe('3000000\n1000\n');
    expect(readFileSync(join(folder, 'output'), 'utf8')).toBe('a=1\n');
    rmSync(folder, { recursive: true });
    await untilNone();
  });

  it('finds files that are replaced while it runs, and cannot write them', async () => {
    const sink = new RecordingSink();
    const script = [
      'cat "$TOKEN"; echo; echo no 2>/dev/null >"$TOKEN" || echo kept',
      'until [ "$(cat "$TOKEN")" = second.part ]; do sleep 0.1; done; wc -c <"$TOKEN"; ls -l "$TOKEN" | cut -c1-10',
    ].join('\n');
    const renewedFiles = [{ variable: 'TOKEN', content: 'first' }];
    const stage = executor.start(stageOf(script, { renewedFiles }), sink);
    await sink.until('kept\n');
    stage.replaceFile?.('TOKEN', 'second.part');
    expect(await stage.ended).toEqual({ kind: 'exit', code: 0 });
    expect(sink.text()).toBe('first\nkept\n11\n-rw-r--r--\n');
    await untilNone();
  });

  it('reaches its services by name when they are ready, and their output is a stream of its own', async () => {
    const sink = new RecordingSink();
    const script =
      'echo web starts $GREETING; mkdir /tmp/w; sleep 1; echo served >/tmp/w/i; exec httpd -f -p 8080 -h /tmp/w';
    const place = {
      services: [
        {
          name: 'web',
          image: { name: IMAGE, entrypoint: ['sh', '-c', script] },
          env: { GREETING: "it's $HOME" },
          ready: 'wget -q -O /dev/null http://127.0.0.1:8080/i',
        },
      ],
    };
    const stage = executor.start(stageOf('wget -q -O - http://web:8080/i', { place }), sink);
    expect(await stage.ended).toEqual({ kind: 'exit', code: 0 });
    expect(sink.text()).toBe('served\n');
    expect(sink.text('service:web')).toBe("web starts it's $HOME\n");
    await untilNone();
  });

  it.each([
    ['exit 3', 'ended with exit code 3'],
    ['sleep 600', 'was not ready within 2 s'],
  ])('ends with the reason of a service that does: %s', async (script, message) => {
    const place = {
      services: [
        {
          name: 'db',
          image: { name: IMAGE, entrypoint: ['sh', '-c', script] },
          env: {},
          ready: 'false',
          readyTimeoutMs: 2_000,
        },
      ],
    };
    const exit = await executor.start(stageOf('echo never', { place }), new RecordingSink()).ended;
    expect(exit).toMatchObject({ kind: 'unplaced', reason: 'service' });
    expect(exit).toHaveProperty('message', expect.stringContaining(message));
    await untilNone();
  });

  it('in an image that its registry has not, or that has no shell, ends with that reason', async () => {
    for (const name of ['127.0.0.1:1/nothing:here', 'UPPER/case', 'localhost/pause:3.10']) {
      const own = lab.executor({ setupMs: 8_000 });
      const exit = await own.start(stageOf('true', { place: { image: { name } } }), new RecordingSink()).ended;
      expect(exit, name).toMatchObject({ kind: 'unplaced', reason: 'image' });
      await own.close();
    }
    await untilNone();
  });

  it('that no node has room for is given up, and says why', async () => {
    const own = lab.executor({ setupMs: 8_000 });
    const place = { resources: { cpu: 500 } };
    const sink = new RecordingSink();
    const exit = await own.start(stageOf('true', { place }), sink).ended;
    expect(sink.text('system')).toMatch(/waits for its Pod: it could not be scheduled.*cpu/);
    expect(exit).toMatchObject({ kind: 'lost', cause: expect.stringMatching(/could not be scheduled.*cpu/) });
    await own.close();
    await untilNone();
  });

  it('waits while a quota is full', async () => {
    const { namespace } = lab;
    const quota = { metadata: { name: 'none' }, spec: { hard: { pods: '0' } } };
    await lab.api.createNamespacedResourceQuota({ namespace, body: quota });
    await expect
      .poll(async () => (await lab.api.readNamespacedResourceQuota({ namespace, name: 'none' })).status?.hard, {
        timeout: 20_000,
      })
      .toBeDefined();
    const sink = new RecordingSink();
    const stage = executor.start(stageOf('echo ran'), sink);
    await expect.poll(() => sink.text('system'), { timeout: 20_000 }).toContain('exceeded quota');
    await lab.api.deleteNamespacedResourceQuota({ namespace, name: 'none' });
    expect(await stage.ended).toEqual({ kind: 'exit', code: 0 });
    await untilNone();
  });

  it('out of memory says so', async () => {
    const place = { resources: { memoryBytes: 32 * 1024 ** 2 } };
    const exit = await executor.start(stageOf('tail /dev/zero', { place }), new RecordingSink()).ended;
    expect(exit).toEqual({ kind: 'signal', signal: 'SIGKILL', code: 137, oom: true });
    await untilNone();
  });

  it('has bounds also where its pipeline asks for none', async () => {
    const own = lab.executor({ limits: { memoryBytes: 32 * 1024 ** 2, diskBytes: 16 * 1024 ** 2 } });
    const exit = await own.start(stageOf('echo printed; tail /dev/zero'), new RecordingSink()).ended;
    expect(exit).toEqual({ kind: 'signal', signal: 'SIGKILL', code: 137, oom: true });
    const sink = new RecordingSink();
    const folder = mkdtempSync(join(tmpdir(), 'penstock-lab-'));
    const spec = stageOf('head -c 50000000 /dev/zero >large; sleep 600', { cwd: folder, folders: [folder] });
    expect(await own.start({ ...spec, timeoutMs: 150_000 }, sink).ended).toMatchObject({ kind: 'signal', oom: false });
    expect(sink.text('system')).toContain('written too much');
    rmSync(folder, { recursive: true });
    await own.close();
    await untilNone();
  }, 200_000);

  it('that somebody deletes, or evicts, was taken away', async () => {
    for (const how of ['delete', 'evict']) {
      const sink = new RecordingSink();
      const stage = executor.start(stageOf('echo up; sleep 600'), sink);
      await sink.until('up\n');
      const target = { namespace: lab.namespace, name: await podOf() };
      if (how === 'delete') await lab.api.deleteNamespacedPod(target);
      else
        await lab.api.createNamespacedPodEviction({
          ...target,
          body: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: target.name } },
        });
      expect(await stage.ended).toMatchObject({ kind: 'unplaced', reason: 'evicted' });
      await untilNone();
    }
  });

  it('at whose last deadline the kubelet ends it was lost', async () => {
    const sink = new RecordingSink();
    const stage = executor.start(stageOf('echo up; sleep 600'), sink);
    await sink.until('up\n');
    await lab.api.patchNamespacedPod(
      { namespace: lab.namespace, name: await podOf(), body: { spec: { activeDeadlineSeconds: 1 } } },
      setHeaderOptions('Content-Type', PatchStrategy.MergePatch),
    );
    expect(await stage.ended).toEqual({ kind: 'lost', cause: 'its Pod has reached its last deadline' });
    await untilNone();
  });

  it.each(['none', 'public'] as const)(
    "asks for network '%s': a policy of its namespace is for its Pod",
    async (network) => {
      const own = lab.executor({ hasNetworkPolicies: true });
      const sink = new RecordingSink();
      const stage = own.start(stageOf('echo up; sleep 600', { place: { network } }), sink);
      await sink.until('up\n');
      const { namespace } = lab;
      const { metadata } = await lab.api.readNamespacedPod({ namespace, name: await podOf() });
      const policies = await lab.objects.list('networking.k8s.io/v1', 'NetworkPolicy', namespace);
      const of = (policies.items as V1NetworkPolicy[]).filter(({ spec }) => {
        const labels = Object.entries(spec?.podSelector?.matchLabels ?? {});
        return labels.length > 0 && labels.every(([name, value]) => metadata?.labels?.[name] === value);
      });
      expect(of).toMatchObject([
        { metadata: { name: `network-${network}` }, spec: { policyTypes: ['Ingress', 'Egress'] } },
      ]);
      const everybody = (policies.items as V1NetworkPolicy[]).find(
        ({ metadata: of }) => of?.name === 'stages-take-no-connections',
      );
      expect(everybody?.spec).toMatchObject({ policyTypes: ['Ingress'] });
      expect(everybody?.spec?.ingress).toBeUndefined();
      // Nothing at all, or not the addresses of the cluster, of machines beside it and of clouds' metadata.
      const blocks = (of[0]?.spec?.egress ?? []).flatMap(({ to }) =>
        (to ?? []).flatMap(({ ipBlock }) => ipBlock ?? []),
      );
      const refused = ['10.0.0.0/8', '169.254.0.0/16', '192.168.0.0/16'];
      expect(blocks.map(({ cidr }) => cidr)).toEqual(network === 'none' ? [] : ['0.0.0.0/0', '::/0']);
      expect(blocks[0]?.except ?? refused).toEqual(expect.arrayContaining(refused));
      stage.stop('cancelled');
      await stage.ended;
      await own.close();
      await untilNone();
    },
  );

  it('asks for a network that its cluster does not keep: it is refused', async () => {
    const sink = new RecordingSink();
    const exit = await executor.start(stageOf('true', { place: { network: 'none' } }), sink).ended;
    expect(exit).toEqual({ kind: 'exit', code: 126 });
    expect(sink.text('system')).toContain("network 'none'");
  });

  it('P36: ends itself when its runner answers no more, and only then counts as lost', async () => {
    let until = Infinity;
    const own = lab.executor({ fence: () => Math.min(until, bootClockMs() + 4_000) });
    const sink = new RecordingSink();
    const stage = own.start(stageOf('echo up; while :; do echo on; sleep 0.2; done'), sink);
    await sink.until('on\n');
    until = bootClockMs() + 1_000;
    const exit = await stage.ended;
    expect(exit.kind).toBe('lost');
    await own.close();
    await untilNone();
  });

  it('P36: of an earlier session is ended before a new one begins', async () => {
    const own = lab.executor({ runnerId: 'earlier' });
    const sink = new RecordingSink();
    const stage = own.start(stageOf('echo up; sleep 600'), sink);
    await sink.until('up\n');
    await endEarlierPods({ cluster: lab.cluster, runnerId: 'earlier', leaseMs: 15_000, warn: () => {} });
    const { items } = await lab.api.listNamespacedPod({ namespace: lab.namespace });
    const running = items.filter(({ status }) => status?.containerStatuses?.[0]?.state?.running !== undefined);
    expect(running).toEqual([]);
    expect((await stage.ended).kind).not.toBe('exit');
    await own.close();
  });
});
