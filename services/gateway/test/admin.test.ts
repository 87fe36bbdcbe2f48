/** What operators see and do, over a real broker: who may, what stands then, and what the audit log says of it. */
import { type BusSubscription, readControls, type SchedulerStatus, subjects } from '@penstock/bus';
import { AuditRepository } from '@penstock/store';
import type { FastifyInstance } from 'fastify';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Backups, BackupState } from '../src/admin/backups.ts';
import type { TestUser } from './fake-auth.ts';
import { API_KEY, graphql, makeWorld, type World } from './harness.ts';

const ADMIN_KEY = 'test-admin-key-of-forty-characters-at-least';
const STATUS = `{ adminStatus {
  schedulers { id answers trouble journalUsed knowsPauses partitions { number isOpen runs parked lagSecs } }
  runners { id session labels slots busy isDrained tenant } queues { labels key stages since isPaused }
  pauses { kind name since by reason } isCut } }`;
const PAUSE =
  'mutation ($key: String, $label: String, $reason: String) { adminPause(key: $key, label: $label, reason: $reason) { kind name by reason } }';
const RESUME = 'mutation ($key: String, $label: String) { adminResume(key: $key, label: $label) { kind name } }';
const DRAIN = 'mutation ($runner: String, $undo: Boolean) { adminDrain(runner: $runner, undo: $undo) { kind name } }';

let world: World;
let ada: TestUser;
let root: TestUser;
let app: FastifyInstance;
const answering: BusSubscription[] = [];

beforeAll(async () => {
  world = await makeWorld();
  [ada, root] = await Promise.all([world.auth.login('ada'), world.auth.login('root', { isAdmin: true })]);
}, 60_000);

afterEach(async () => {
  for (const each of answering.splice(0)) each.stop();
  for (const { target } of await readControls(world.bus)) {
    const of = target.kind === 'key' ? { key: target.key } : target.kind === 'label' ? { label: target.label } : {};
    if (target.kind === 'runner') await ask(DRAIN, { runner: target.runner, undo: true });
    else await ask(RESUME, of);
  }
  await world.reset();
}, 60_000);
afterAll(() => world.close());

async function begin(options: Parameters<World['gateway']>[0] = {}): Promise<void> {
  app = await world.gateway({ adminKey: ADMIN_KEY, mode: 'production', ...options });
}

const ask = (query: string, variables: Record<string, unknown> = {}, token: string | null = ADMIN_KEY) =>
  graphql(app, query, { variables, token });

const codes = ({ errors }: Awaited<ReturnType<typeof graphql>>): unknown[] =>
  errors.map(({ extensions }) => extensions['code']);

/** Stands for a scheduler. */
async function scheduler(name: string, members: readonly string[], more: Partial<SchedulerStatus> = {}): Promise<void> {
  const status: SchedulerStatus = {
    scheduler: name,
    members,
    journalUsed: 0.25,
    knowsControls: true,
    partitions: [{ partition: 1, isOpen: true, runs: 3, parked: 2, lagMs: 1_500 }],
    runners: [{ runner: 'r1', session: `s-${name}`, labels: ['linux'], slots: 4, busy: 1 }],
    queues: [{ labels: ['gpu'], key: `key of ${name}`, count: 7, since: 1_700_000_000_000, isPaused: false }],
    isCut: false,
    ...more,
  };
  answering.push(world.ownerBus.respond<null, SchedulerStatus>(subjects.status(name), () => status));
  if (answering.length === 1)
    answering.push(world.ownerBus.respond<null, SchedulerStatus>(subjects.status('any'), () => status));
  await world.ownerBus.flush();
}

describe('who administers', () => {
  it('the administration key and admins who are logged in; the API key in development mode alone; tokens never', async () => {
    await begin();
    await scheduler('a', ['a']);
    const personal = world.auth.personalToken('root', 'read', 'trigger', 'publish', 'secrets');
    for (const token of [ADMIN_KEY, root.token]) expect(codes(await ask(STATUS, {}, token))).toEqual([]);
    for (const token of [null, API_KEY, personal])
      expect(codes(await ask(STATUS, {}, token))).toEqual(['UNAUTHENTICATED']);
    expect(codes(await ask(STATUS, {}, ada.token))).toEqual(['FORBIDDEN']);
    for (const [query, variables] of [
      [PAUSE, {}],
      [RESUME, {}],
      [DRAIN, { runner: 'r1' }],
      ['{ adminRunners { id } }', {}],
      ['{ auditLog { at } }', {}],
      ['{ adminAudit { at } }', {}],
    ] as const)
      expect(codes(await ask(query, variables, ada.token)), query).toEqual(['FORBIDDEN']);
    expect(await readControls(world.bus)).toEqual([]);
    await begin({ mode: 'development' });
    expect(codes(await ask(STATUS, {}, API_KEY))).toEqual([]);
    expect(codes(await ask(STATUS, {}, personal))).toEqual(['UNAUTHENTICATED']);
  }, 60_000);

  it('the administration key administers, and sees and changes no run', async () => {
    await begin({ publicRead: false });
    expect(codes(await ask('{ runs { id } }'))).toEqual(['UNAUTHENTICATED']);
    expect(codes(await ask('mutation { triggerPipeline(yaml: "x") { run { id } } }'))).toEqual(['UNAUTHENTICATED']);
    expect(codes(await ask('{ me { id } }'))).toEqual(['UNAUTHENTICATED']);
  }, 60_000);
});

describe('adminStatus', () => {
  it('is what every scheduler says; one that does not answer is told as such', async () => {
    await begin();
    await scheduler('a', ['a', 'b', 'gone']);
    await scheduler('b', ['a', 'b'], { trouble: 'the broker is full', knowsControls: false });
    const { data } = await ask(STATUS);
    expect(data?.['adminStatus']).toMatchObject({
      schedulers: [
        {
          id: 'a',
          answers: true,
          trouble: null,
          journalUsed: 0.25,
          knowsPauses: true,
          partitions: [{ number: 1, isOpen: true, runs: 3, parked: 2, lagSecs: 1.5 }],
        },
        { id: 'b', answers: true, trouble: 'the broker is full', knowsPauses: false },
        { id: 'gone', answers: false, partitions: [] },
      ],
      runners: [
        { id: 'r1', session: 's-a', labels: ['linux'], slots: 4, busy: 1, isDrained: false, tenant: null },
        { id: 'r1', session: 's-b' },
      ],
      queues: [
        { labels: ['gpu'], key: 'key of a', stages: 7, since: '2023-11-14T22:13:20.000Z', isPaused: false },
        { key: 'key of b' },
      ],
      pauses: [],
      isCut: false,
    });
  }, 60_000);

  it('is UNAVAILABLE where no scheduler is there; pausing works all the same', async () => {
    await begin();
    expect(codes(await ask(STATUS))).toEqual(['UNAVAILABLE']);
    expect((await ask(PAUSE)).data).toEqual({
      adminPause: [{ kind: 'all', name: null, by: 'admin-key', reason: null }],
    });
  }, 60_000);
});

describe('pausing', () => {
  it('holds up everything, a key or a label; says what is held up; is in the audit log', async () => {
    const audit = new AuditRepository(world.store, { log: { warn: () => {} } });
    await begin({ audit });
    const from = new Date(Date.now() - 1).toISOString();
    await ask(PAUSE, { reason: ' upgrade ' });
    await ask(PAUSE, { key: 'user/1' });
    const { data } = await ask(PAUSE, { label: 'gpu' });
    expect(data?.['adminPause']).toEqual([
      { kind: 'all', name: null, by: 'admin-key', reason: 'upgrade' },
      { kind: 'key', name: 'user/1', by: 'admin-key', reason: null },
      { kind: 'label', name: 'gpu', by: 'admin-key', reason: null },
    ]);
    expect((await ask(RESUME)).data?.['adminResume']).toHaveLength(2);
    expect(codes(await ask(RESUME))).toEqual(['NOT_FOUND']);
    expect((await readControls(world.bus)).find(({ target }) => target.kind === 'all')?.resumedAt).toBeGreaterThan(0);
    await audit.close();
    const log = await ask(
      `query ($since: String) { auditLog(limit: 10, since: $since) { actor action target outcome }
        adminAudit(limit: 10, since: $since) { actor action target outcome } }`,
      {
        since: from,
      },
    );
    expect(log.data?.['adminAudit']).toEqual(log.data?.['auditLog']);
    expect(log.data?.['auditLog']).toEqual([
      { actor: 'admin-key', action: 'admin.resume', target: 'all', outcome: 'ok' },
      { actor: 'admin-key', action: 'admin.pause', target: 'label gpu', outcome: 'ok' },
      { actor: 'admin-key', action: 'admin.pause', target: 'key user/1', outcome: 'ok' },
      { actor: 'admin-key', action: 'admin.pause', target: 'all', outcome: 'ok' },
    ]);
    expect(codes(await ask('{ auditLog(since: "yesterday") { at } }'))).toEqual(['BAD_USER_INPUT']);
    const later = new Date(Date.now() + 60_000).toISOString();
    expect((await ask(`{ auditLog(since: "${later}") { at } }`)).data).toEqual({ auditLog: [] });
  }, 60_000);

  it.each([[{ key: 'a', label: 'b' }], [{ key: '' }], [{ label: 'x'.repeat(501) }], [{ reason: 'x'.repeat(201) }]])(
    '%j is BAD_USER_INPUT',
    async (variables) => {
      await begin();
      expect(codes(await ask(PAUSE, variables))).toEqual(['BAD_USER_INPUT']);
      expect((await readControls(world.bus)).filter(({ resumedAt }) => resumedAt === undefined)).toEqual([]);
    },
    60_000,
  );
});

describe('draining', () => {
  it('is for a runner that is connected, and shows there', async () => {
    await begin();
    await scheduler('a', ['a']);
    expect(codes(await ask(DRAIN, { runner: 'r2' }))).toEqual(['NOT_FOUND']);
    expect(codes(await ask(DRAIN, {}))).toEqual(['BAD_USER_INPUT']);
    expect((await ask(DRAIN, { runner: 'r1' })).data?.['adminDrain']).toEqual([{ kind: 'runner', name: 'r1' }]);
    expect((await ask('{ adminRunners { id isDrained } }')).data).toEqual({
      adminRunners: [{ id: 'r1', isDrained: true }],
    });
    expect((await ask(DRAIN, { runner: 'r1', undo: true })).data?.['adminDrain']).toEqual([]);
    expect(codes(await ask(DRAIN, { runner: 'r1', undo: true }))).toEqual(['NOT_FOUND']);
  }, 60_000);
});

describe('adminBackup', () => {
  const BACKUP = 'mutation ($folder: String) { adminBackup(folder: $folder) { folder finishedAt problem notes } }';
  const STATE = '{ adminBackupState { folder finishedAt files bytes notes problem } }';

  it('begins one and says how it ended, for administrators alone; the audit log has who asked', async () => {
    let last: BackupState | null = null;
    const backups: Backups = {
      last: () => last,
      begin: (folder) => (last = { folder, startedAt: 1_700_000_000_000 }),
    };
    const audit = new AuditRepository(world.store, { log: { warn: () => {} } });
    await begin({ backups, audit });
    expect((await ask(STATE)).data).toEqual({ adminBackupState: null });
    expect(codes(await ask(BACKUP, { folder: '/backup' }, ada.token))).toEqual(['FORBIDDEN']);
    expect(codes(await ask(STATE, {}, ada.token))).toEqual(['FORBIDDEN']);
    for (const folder of ['relative', '', `/${'x'.repeat(1_000)}`, null])
      expect(codes(await ask(BACKUP, { folder }))).toEqual(['BAD_USER_INPUT']);
    const { data } = await ask(BACKUP, { folder: '/backup' });
    expect(data).toEqual({ adminBackup: { folder: '/backup', finishedAt: null, problem: null, notes: [] } });
    last = {
      folder: '/backup',
      startedAt: 1,
      finishedAt: 1_700_000_001_000,
      files: 3,
      bytes: 5e9,
      notes: ['no bucket'],
    };
    expect((await ask(STATE)).data).toEqual({
      adminBackupState: {
        folder: '/backup',
        finishedAt: '2023-11-14T22:13:21.000Z',
        files: 3,
        bytes: 5e9,
        notes: ['no bucket'],
        problem: null,
      },
    });
    await audit.close();
    const { data: recorded } = await ask('{ auditLog(limit: 50) { action target } }');
    expect(recorded?.['auditLog']).toContainEqual({ action: 'admin.backup', target: '/backup' });
  });

  it('is refused, with where to read on, where the server has not everything itself', async () => {
    await begin();
    const { errors } = await ask(BACKUP, { folder: '/backup' });
    expect(errors[0]?.message).toContain('docs/operating.md');
  });
});
