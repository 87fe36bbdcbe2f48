/** What pushes say of the schedule of their repository, and who is believed (P28). */
import type { IngestCalls, IngestVerb, ScheduleView } from '@penstock/bus';
import { partitionOfKey, SERVICE_TENANT } from '@penstock/run';
import { Owners } from '@penstock/run-client';
import { answerCalls, callService } from '@penstock/service';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { githubPush, githubSignature, makeRepository, pipelineText, type TestRepository } from './repository.ts';
import { makeWorld, type Answer, type RunningIngest, type World } from './world.ts';

const WAIT = { timeout: 30_000 };
let world: World;
let repository: TestRepository;
let owners: Owners;

beforeAll(async () => {
  world = await makeWorld();
  repository = makeRepository();
  owners = new Owners(world.bus, 2);
  answerCalls(world.bus, 'auth', { user: ({ id }: { id: string }) => ({ id, tier: 'pro' }) });
}, 60_000);
afterAll(async () => {
  owners.close();
  await world.close();
  repository.remove();
});

const call = <V extends IngestVerb>(verb: V, request: IngestCalls[V]['request']): Promise<IngestCalls[V]['answer']> =>
  callService<IngestCalls[V]['request'], IngestCalls[V]['answer']>(world.bus, 'webhook-ingest', verb, request);

let count = 0;
const send = (
  ingest: RunningIngest,
  name: string,
  secret: string | undefined,
  more: { readonly ref?: string; readonly message?: string; readonly commit?: string } = {},
): Promise<Answer> => {
  const { ref = 'refs/heads/trunk', message, commit = repository.git('rev-parse', 'HEAD') } = more;
  const text = JSON.stringify(githubPush({ url: repository.url, commit, repository: name, ref, message }));
  return ingest.send(text, {
    'x-github-event': 'push',
    'x-github-delivery': `s${(count += 1)}`,
    ...(secret === undefined ? {} : { 'x-hub-signature-256': githubSignature(text, secret) }),
  });
};

async function linesOf(name: string, tenant: string): Promise<readonly ScheduleView[]> {
  const all = tenant === SERVICE_TENANT ? [0, 1] : [partitionOfKey(tenant, 2)];
  const found = await Promise.all(all.map((partition) => owners.schedules(partition, { tenants: [tenant] })));
  return found.flatMap(({ schedules }) => schedules).filter(({ repository: of }) => of === name);
}

const crons = async (name: string, tenant: string): Promise<readonly string[]> =>
  (await linesOf(name, tenant)).map(({ cron }) => cron).toSorted();

async function stepOf(answer: Answer, tenant: string): Promise<unknown> {
  return await vi.waitFor(async () => {
    const { delivery } = await call('delivery', { id: answer.body.run_id ?? '', tenants: [tenant] });
    expect(delivery).not.toBeNull();
    return delivery?.trace.find(({ step }) => step === 'schedule');
  }, WAIT);
}

const scheduled = (...lines: readonly string[]): string =>
  pipelineText('demo', `schedule: [${lines.map((line) => `'${line}'`).join(', ')}]\n`);

describe('the schedule of a connected repository', () => {
  it('is that of the newest file of its default branch', async () => {
    const ingest = await world.ingest();
    const { secret } = await call('connect', { userId: 'u1', provider: 'git_host_a', repository: 'acme/a' });
    repository.commit({ '.pipeline.yaml': scheduled('1 2 3 4 *', '5 6 7 8 *') });
    const first = await send(ingest, 'acme/a', secret);
    await vi.waitFor(async () => expect(await crons('acme/a', 'user/u1')).toEqual(['1 2 3 4 *', '5 6 7 8 *']), WAIT);
    expect(await stepOf(first, 'user/u1')).toMatchObject({
      passed: true,
      detail: expect.stringContaining('1 2 3 4 *') as unknown,
    });
    // What another branch says is not looked at.
    repository.commit({ '.pipeline.yaml': scheduled('9 9 9 9 *') });
    await send(ingest, 'acme/a', secret, { ref: 'refs/heads/other' });
    expect(await crons('acme/a', 'user/u1')).toHaveLength(2);
    // A commit that wants no run says all the same what is to be started.
    repository.commit({ '.pipeline.yaml': scheduled('5 6 7 8 *', '0 0 1 1 *') });
    expect((await send(ingest, 'acme/a', secret, { message: 'docs [skip ci]' })).body).toMatchObject({
      status: 'Skipped',
    });
    await vi.waitFor(async () => expect(await crons('acme/a', 'user/u1')).toEqual(['0 0 1 1 *', '5 6 7 8 *']), WAIT);
    repository.commit({ '.pipeline.yaml': 'stages: 1\n' });
    await send(ingest, 'acme/a', secret);
    await vi.waitFor(async () => expect(await crons('acme/a', 'user/u1')).toEqual([]), WAIT);
  }, 120_000);

  it('is over with its file, and with its connection', async () => {
    const ingest = await world.ingest();
    const { id, secret } = await call('connect', { userId: 'u2', provider: 'git_host_a', repository: 'acme/b' });
    repository.commit({ '.pipeline.yaml': scheduled('1 2 3 4 *') });
    await send(ingest, 'acme/b', secret);
    await vi.waitFor(async () => expect(await crons('acme/b', 'user/u2')).toHaveLength(1), WAIT);
    const kept = repository.git('rev-parse', 'HEAD');
    repository.commit({ 'README.md': 'no pipeline' });
    await send(ingest, 'acme/b', secret);
    await vi.waitFor(async () => expect(await crons('acme/b', 'user/u2')).toEqual([]), WAIT);
    await send(ingest, 'acme/b', secret, { commit: kept });
    await vi.waitFor(async () => expect(await crons('acme/b', 'user/u2')).toHaveLength(1), WAIT);
    await call('disconnect', { userId: 'u2', id });
    await vi.waitFor(async () => expect(await crons('acme/b', 'user/u2')).toEqual([]), WAIT);
    // Connected again it is another one: the end of the first does nothing to it.
    const again = await call('connect', { userId: 'u2', provider: 'git_host_a', repository: 'acme/b' });
    await send(ingest, 'acme/b', again.secret, { commit: kept });
    await vi.waitFor(async () => expect(await crons('acme/b', 'user/u2')).toHaveLength(1), WAIT);
    expect((await call('connections', { userId: 'u2' })).repositories).toHaveLength(1);
  }, 120_000);
});

describe('the schedule of a repository that nobody has connected', () => {
  it('is believed where the push is signed and the operator names the repository; else the trace says why not', async () => {
    repository.commit({ '.pipeline.yaml': scheduled('1 2 3 4 *') });
    const open = await world.ingest();
    const unsigned = await send(open, 'acme/c', undefined);
    expect(await stepOf(unsigned, SERVICE_TENANT)).toMatchObject({
      passed: false,
      detail: expect.stringContaining('not signed') as unknown,
    });
    const any = await world.ingest({ secrets: { git_host_a: 'server' } });
    const unnamed = await send(any, 'acme/c', 'server');
    expect(await stepOf(unnamed, SERVICE_TENANT)).toMatchObject({
      passed: false,
      detail: expect.stringContaining('SERVICE_WEBHOOK_REPOSITORIES') as unknown,
    });
    expect(await linesOf('acme/c', SERVICE_TENANT)).toEqual([]);
    const named = await world.ingest({ secrets: { git_host_a: 'server' }, repositories: ['acme/*'] });
    await send(named, 'acme/c', 'server');
    await vi.waitFor(async () => expect(await crons('acme/c', SERVICE_TENANT)).toEqual(['1 2 3 4 *']), WAIT);
    // What somebody has sent again is no newer file.
    repository.commit({ '.pipeline.yaml': scheduled('4 4 4 4 *') });
    const newest = await send(named, 'acme/c', 'server');
    await vi.waitFor(async () => expect(await crons('acme/c', SERVICE_TENANT)).toEqual(['4 4 4 4 *']), WAIT);
    expect(newest.body).toMatchObject({ status: 'Success' });
    const replayed = await call('replay', { id: unnamed.body.run_id ?? '', tenants: [SERVICE_TENANT], dryRun: false });
    await vi.waitFor(async () => {
      const { delivery } = await call('delivery', { id: replayed.id, tenants: [SERVICE_TENANT] });
      expect(delivery?.trace.find(({ step }) => step === 'schedule')).toMatchObject({ passed: false });
    }, WAIT);
    expect(await crons('acme/c', SERVICE_TENANT)).toEqual(['4 4 4 4 *']);
  }, 120_000);
});
