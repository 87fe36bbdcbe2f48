import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startCluster, type Cluster } from '../cluster/cluster.ts';
import { comparable, Desk, publishSuite } from './extension-desk.ts';

describe('services as processes', () => {
  let cluster: Cluster;
  let desk: Desk;
  beforeAll(async () => {
    cluster = await startCluster({
      schedulers: 1,
      runners: 1,
      gateways: 1,
      registries: 1,
      auths: 1,
      ingests: 1,
      partitions: 1,
      slots: 2,
    });
    desk = new Desk({ SERVICE_URL: cluster.url, SERVICE_API_KEY: cluster.apiKey });
  });
  afterAll(async () => {
    desk.remove();
    await cluster.stop();
  });

  it('the same file gives the same events when the registry is gone after the lock was taken and the cache is warm', async () => {
    await publishSuite(desk);
    expect(await desk.penstock(['lock'])).toMatchObject({ code: 0 });
    const before = await desk.penstock(['trigger', '--json']);
    expect(before.code, before.stderr).toBe(0);
    await cluster.kill('registry', 0);
    const after = await desk.penstock(['trigger', '--json']);
    const local = await desk.penstock(['run', '--json']);
    expect([after.code, local.code], `${after.stderr}${local.stderr}`).toEqual([0, 0]);
    expect(comparable(after)).toEqual(comparable(before));
    expect(comparable(local)).toEqual(comparable(before));
  });
});
