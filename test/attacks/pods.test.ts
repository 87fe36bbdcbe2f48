/**
 * The programs of `programs.ts` as stages in Pods of a cluster; where none is named that is reported. What only a cluster can give is
 * looked for in it: where it is there it has to hold, and where it is not that is told, and never passed over.
 */
import { appendFileSync, chmodSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { RecordingSink } from '@penstock/executor/testing';
import { IMAGE, labForTests, stageOf, type Lab } from '@penstock/executor-kubernetes/testing';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { startServer, temporaryFolder } from '../support/server.ts';
import { attack, whyNoAttacks } from './attack.ts';
import { PROGRAMS } from './programs.ts';
import { CANARY, type World } from './worlds.ts';

const why = whyNoAttacks();
const found = why === undefined ? await labForTests('attacks of stages (Pod)') : null;
/** Of what is run only where there is one. */
const lab = found as Lab;

async function startWorld(): Promise<World> {
  const folder = temporaryFolder('penstock-attack-');
  chmodSync(folder.path, 0o700);
  const secret = join(folder.path, 'secret');
  writeFileSync(secret, CANARY, { mode: 0o600 });
  const server = await startServer({
    dataDir: join(folder.path, 'data'),
    env: {
      SERVICE_EXECUTORS: 'kubernetes',
      SERVICE_K8S_NAMESPACE: lab.namespace,
      SERVICE_K8S_KUBECONFIG: lab.kubeconfig,
      SERVICE_RUNNER_LEASE_SECS: '60',
      SERVICE_SLOTS: '4',
    },
  });
  onTestFinished(async () => {
    await server.stop();
    folder.remove();
  });
  return { server, secret, image: IMAGE, areApart: true };
}

/** As many as the program starts. */
const PROCESSES = 1024;

const tell = (line: string): void => {
  const file = process.env['PENSTOCK_NOT_RUN_FILE'];
  if (file === undefined) process.stderr.write(`${line}\n`);
  else appendFileSync(file, `${line}\n`);
};
const tellNotHeld = (name: string, evidence: string): void =>
  tell(`attacks in Pods: '${name}' is not held by this cluster: ${evidence}`);
const tellNotTried = (reason: string): void => tell(`network policies of this cluster: ${reason}`);

/** Of each node, as its kubelet says. */
async function pidLimits(): Promise<number[]> {
  const { items } = await lab.api.listNode();
  const configurations = items.map(({ metadata }) =>
    lab.api.connectGetNodeProxyWithPath({ name: metadata?.name ?? '', path: 'configz' }),
  );
  const texts = await Promise.all(configurations);
  return texts.map((text) => {
    const { kubeletconfig } = (typeof text === 'string' ? JSON.parse(text) : text) as {
      readonly kubeletconfig: { readonly podPidsLimit?: number };
    };
    return kubeletconfig.podPidsLimit ?? -1;
  });
}

describe.runIf(found !== null)('programs that a stage in a Pod may try', () => {
  afterAll(() => lab.close());

  it('find nothing but what is told to be not held', async () => {
    const known = PROGRAMS.filter(({ notHeld }) => notHeld?.includes('Pod')).map(({ name }) => name);
    const all = await attack(await startWorld());
    const isBounded = (await pidLimits()).every((limit) => limit > 0 && limit <= PROCESSES);
    if (!isBounded) tellNotHeld('processes', `the kubelet's podPidsLimit is ${(await pidLimits()).join(', ')}`);
    const clusters = isBounded ? [] : PROGRAMS.filter(({ isClusters }) => isClusters).map(({ name }) => name);
    expect(all.filter((name) => !known.includes(name) && !clusters.includes(name))).toEqual([]);
  }, 400_000);

  it("reach nothing where they ask for network 'none', if the cluster keeps its policies", async () => {
    const server = createServer((socket) => socket.end());
    await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
    onTestFinished(() => new Promise<void>((done) => server.close(() => done())));
    const [address] = Object.values(networkInterfaces())
      .flatMap((each) => each ?? [])
      .filter((each) => !each.internal && each.family === 'IPv4');
    const { port } = server.address() as AddressInfo;
    const executor = lab.executor({ hasNetworkPolicies: true });
    onTestFinished(() => executor.close());
    const reached = async (network: 'open' | 'none'): Promise<boolean> => {
      const sink = new RecordingSink();
      const script = `(sleep 15; kill $$) & nc ${address?.address} ${port} </dev/null && echo reached; kill $!`;
      await executor.start(stageOf(script, { place: { network } }), sink).ended;
      return sink.text().includes('reached');
    };
    // Who cannot reach it anyway proves nothing.
    if (!(await reached('open'))) return tellNotTried('the machine of the tests is not within reach of its Pods');
    if (!(await reached('none'))) return;
    const policies = await lab.objects.list('networking.k8s.io/v1', 'NetworkPolicy', lab.namespace);
    expect(policies.items.map(({ metadata }) => metadata?.name)).toContain('network-none');
    tellNotHeld(
      'own-address',
      "a Pod that its policy 'network-none' is for has reached an address: nobody keeps policies",
    );
  }, 200_000);
});
