/** Images from a registry that wants credentials, on a real cluster whose node can reach this machine's loopback (`lab.ts`). */
import { appendFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { RecordingSink } from '@penstock/executor/testing';
import { afterAll, describe, expect, it } from 'vitest';
import { labForTests, stageOf, type Lab } from './lab.ts';
import { startRegistry, type LabRegistry } from './registry.ts';

const WHAT = 'images of a registry on Kubernetes';
const named = await labForTests(WHAT);
const isHere = named !== null && (await nodesAreHere(named));
const started = isHere ? await startRegistry() : null;
const notRunFile = process.env['PENSTOCK_NOT_RUN_FILE'];
if (named !== null && started === null && notRunFile !== undefined)
  appendFileSync(notRunFile, `${WHAT}: ${isHere ? 'there is no busybox' : 'the nodes are other machines'}\n`);

/** Of what is run only where there is one. */
const lab = named as Lab;
const registry = started as LabRegistry;
afterAll(async () => {
  await started?.close();
  await named?.close();
});

async function nodesAreHere({ api }: Lab): Promise<boolean> {
  const own = Object.values(networkInterfaces()).flatMap((each) => (each ?? []).map(({ address }) => address));
  const { items } = await api.listNode();
  return items.every(({ status }) => (status?.addresses ?? []).some(({ address }) => own.includes(address)));
}

describe.runIf(started !== null)('a stage in an image of a registry', () => {
  it('has it with the credentials that were given for it; they go with its Pod', async () => {
    const executor = lab.executor();
    const sink = new RecordingSink();
    const image = { name: registry.image, auth: registry.auth };
    const stage = executor.start(stageOf('echo "from registry: $FROM_REGISTRY"', { place: { image } }), sink);
    expect(await stage.ended).toEqual({ kind: 'exit', code: 0 });
    expect(sink.text()).toBe('from registry: yes\n');
    await executor.close();
    const secrets = async (): Promise<number> =>
      (await lab.api.listNamespacedSecret({ namespace: lab.namespace })).items.length;
    await expect.poll(secrets, { timeout: 30_000 }).toBe(0);
    await expect.poll(() => lab.pods(), { timeout: 30_000 }).toEqual([]);
  }, 120_000);

  it.each([
    ['no credentials', undefined, '1'],
    ['wrong credentials', { username: 'reader', password: 'wrong' }, '1'],
    ['the name of an image that is not there', { username: 'reader', password: 'secret' }, '2'],
  ])(
    'with %s ends with the reason image, at once',
    async (_what, auth, tag) => {
      const executor = lab.executor({ setupMs: 90_000 });
      const image = { name: registry.image.replace(/1$/, tag), pull: 'always' as const, auth };
      const begun = performance.now();
      const exit = await executor.start(stageOf('true', { place: { image } }), new RecordingSink()).ended;
      expect(exit).toMatchObject({ kind: 'unplaced', reason: 'image' });
      expect(performance.now() - begun).toBeLessThan(80_000);
      expect(JSON.stringify(exit)).not.toContain('wrong');
      await executor.close();
      await expect.poll(() => lab.pods(), { timeout: 30_000 }).toEqual([]);
    },
    120_000,
  );
});
