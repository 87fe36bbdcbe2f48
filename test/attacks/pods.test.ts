/** The programs of `programs.ts` as stages in Pods of a cluster; where none is named that is reported. */
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { IMAGE, labForTests, type Lab } from '@penstock/executor-kubernetes/testing';
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

describe.runIf(found !== null)('programs that a stage in a Pod may try', () => {
  afterAll(() => lab.close());

  it('find nothing but what is told to be not held', async () => {
    const known = PROGRAMS.filter(({ notHeld }) => notHeld?.includes('Pod')).map(({ name }) => name);
    const all = await attack(await startWorld());
    expect(all.filter((name) => !known.includes(name))).toEqual([]);
  }, 400_000);
});
