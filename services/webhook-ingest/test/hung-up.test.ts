/** Senders that do not wait for their answer. */
import { once } from 'node:events';
import { connect, type AddressInfo } from 'node:net';
import { noMeter, type Meter } from '@penstock/telemetry/metrics';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { githubPush, makeRepository, pipelineText, type TestRepository } from './repository.ts';
import { makeWorld, type World } from './world.ts';

let world: World;
let repository: TestRepository;

beforeAll(async () => {
  world = await makeWorld();
  repository = makeRepository();
});
afterAll(async () => {
  world.release();
  await world.close();
  repository.remove();
});

it('a sender that hangs up is waited for no more, and its run goes on', async () => {
  const commit = repository.commit({ '.pipeline.yaml': pipelineText('demo') });
  const answered: unknown[] = [];
  const meter: Meter = {
    ...noMeter,
    add: (name, labels) => void (name === 'penstock_deliveries_total' && answered.push(labels)),
  };
  world.held = true;
  // It waits for the run's end far longer than this test has.
  const ingest = await world.ingest({ waitSecs: 3_600, meter });
  await ingest.app.listen({ host: '127.0.0.1', port: 0 });
  const body = JSON.stringify(githubPush({ url: repository.url, commit }));
  const socket = connect((ingest.app.server.address() as AddressInfo).port, '127.0.0.1');
  await once(socket, 'connect');
  socket.write(
    `POST /webhook HTTP/1.1\r\nHost: localhost\r\nX-GitHub-Event: push\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  await expect.poll(() => world.jobs.length, { timeout: 20_000 }).toBe(1);
  expect(answered).toEqual([]);
  socket.destroy();
  await expect.poll(() => answered, { timeout: 20_000 }).toEqual([{ provider: 'git_host_a', outcome: 'running' }]);
  world.release();
  await expect.poll(async () => (await world.runsOf())[0]?.status, { timeout: 20_000 }).toBe('SUCCESS');
}, 60_000);
