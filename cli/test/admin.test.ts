import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { folder, penstock, type CommandEnd } from './command.ts';
import { answering, fakeServer, type GraphqlAnswer } from './fake-server.ts';

const PAUSED = {
  kind: 'all',
  name: null,
  since: new Date(Date.now() - 60_000).toISOString(),
  by: 'user/1',
  reason: 'up\u001b[31mgrade',
};
const STATUS = {
  schedulers: [
    {
      id: 's1',
      answers: true,
      trouble: null,
      journalUsed: 0.123,
      knowsPauses: true,
      partitions: Array.from({ length: 10 }, (_, number) => ({
        number,
        isOpen: true,
        runs: 2,
        parked: 1,
        lagSecs: 0.25,
      })),
    },
    { id: 's2', answers: false, trouble: null, journalUsed: 0, knowsPauses: false, partitions: [] },
    { id: 's3', answers: true, trouble: null, journalUsed: 0, knowsPauses: false, partitions: [] },
  ],
  runners: [
    { id: 'r1', session: 'x', labels: ['linux', 'gpu'], slots: 4, busy: 4, isDrained: false, tenant: null },
    { id: 'r2', session: 'y', labels: ['linux'], slots: 4, busy: 1, isDrained: true, tenant: 'user/7' },
    { id: 'r3', session: 'z', labels: [], slots: 4, busy: 0, isDrained: true },
  ],
  queues: [{ labels: [], key: 'user/1', stages: 12, since: null, isPaused: true }],
  pauses: [PAUSED],
  isCut: false,
};

describe('penstock admin status', () => {
  it('shows what is held up, schedulers, runners and what waits; nothing of it does anything to the terminal', async () => {
    const { env } = await answering({ adminStatus: STATUS });
    const { code, stdout } = await penstock(['admin', 'status'], { cwd: folder(), env });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^HELD UP +FOR +BY +REASON\neverything +\d+s +user\/1 +up.*grade\n\n/);
    expect(stdout).toMatch(/\ns1 +0,1,2,3,4,5,6,7,… \(10\) +20 +10 +0\.3s +12% +ok\n/);
    expect(stdout).toMatch(/\ns2 .* does not answer\n/);
    expect(stdout).toMatch(/\ns3 .* grants nothing: has not heard what is paused\n/);
    expect(stdout).toMatch(
      /\nr1 +4 +4 +full +all +linux,gpu\nr2 +1 +4 +draining +user\/7 +linux\nr3 +0 +4 +drained +all\n/,
    );
    expect(stdout).toMatch(/\n +12 +- +paused +user\/1 +\(any\)\n$/);
    expect(stdout).not.toContain('\u001b');
    const json = await penstock(['admin', 'status', '--json'], { cwd: folder(), env });
    expect(JSON.parse(json.stdout)).toEqual(STATUS);
  });

  it('presents SERVICE_ADMIN_KEY before the API key', async () => {
    const { requests, env } = await answering({ adminStatus: STATUS });
    const both = { ...env, SERVICE_API_KEY: 'the-api-key', SERVICE_ADMIN_KEY: 'the-admin-key' };
    await penstock(['admin', 'status'], { cwd: folder(), env: both });
    await penstock(['admin', 'status'], { cwd: folder(), env: { ...both, SERVICE_ADMIN_KEY: '' } });
    expect(requests.map(({ authorization }) => authorization)).toEqual(['Bearer the-admin-key', 'Bearer the-api-key']);
  });
});

describe('penstock admin pause, resume and drain', () => {
  it('say what is held up then, and how many stages that is about', async () => {
    const { requests, env } = await answering({ adminPause: [PAUSED], adminStatus: STATUS });
    const args = ['admin', 'pause', '--key', 'user/1', '--reason', 'upgrade'];
    const { code, stdout, stderr } = await penstock(args, { cwd: folder(), env });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^HELD UP/);
    expect(stderr).toContain('of its stages 12 wait now');
    expect(requests[0]?.variables).toEqual({ key: 'user/1', reason: 'upgrade' });
    const other = await penstock(['admin', 'pause', '--key', 'user/2'], { cwd: folder(), env });
    expect(other.stderr).toContain('none of its stages waits for a runner now');
  });

  it('say so where nothing is held up any more, and which runner is drained', async () => {
    const resumed = await answering({ adminResume: [] });
    const over = await penstock(['admin', 'resume', '--label', 'gpu'], { cwd: folder(), env: resumed.env });
    expect(over).toMatchObject({ code: 0, stdout: 'Nothing is held up.\n' });
    expect(resumed.requests[0]?.variables).toEqual({ label: 'gpu' });
    const drained = await answering({ adminDrain: [{ ...PAUSED, kind: 'runner', name: 'r1' }] });
    const { stdout } = await penstock(['admin', 'drain', 'r1'], { cwd: folder(), env: drained.env });
    expect(stdout).toContain('runner r1');
    expect(drained.requests[0]?.variables).toEqual({ runner: 'r1', undo: false });
  });
});

describe('penstock admin audit', () => {
  const entry = {
    at: '2026-01-02T03:04:05.678Z',
    actor: 'api-key',
    action: 'run.cancel',
    target: 'x',
    outcome: 'ok',
    ip: null,
  };

  it('shows who did what since then', async () => {
    const { requests, env } = await answering({ auditLog: [entry] });
    const { stdout } = await penstock(['admin', 'audit', '--since', '24h', '--limit', '7'], { cwd: folder(), env });
    expect(stdout).toMatch(/^AT +WHO +DID +TO +OUTCOME +FROM\n2026-01-02 03:04:05Z +api-key +run\.cancel +x +ok +-\n$/);
    const { since, limit } = requests[0]?.variables ?? {};
    expect(limit).toBe(7);
    expect(Math.abs(Date.parse(String(since)) + 86_400_000 - Date.now())).toBeLessThan(60_000);
  });
});

it.each([
  [['admin'], 'administer what?'],
  [['admin', 'statsu'], "did you mean 'admin status'?"],
  [['admin', 'status', 'x'], 'takes no argument'],
  [['admin', 'drain'], 'needs the name of a runner'],
  [['admin', 'status', '--key', 'x'], "'admin status' takes no --key"],
  [['admin', 'pause', '--key', 'x', '--label', 'y'], 'not both'],
  [['admin', 'audit', '--since', 'yesterday'], '--since is'],
  [['admin', 'audit', '--limit', '0'], '--limit is'],
])('%j is wrong usage', async (args, message) => {
  expect(await penstock(args, { cwd: folder() })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(message) as unknown,
  });
});

describe('penstock admin backup', () => {
  const DONE = {
    folder: '/b',
    startedAt: '2026-11-23T08:00:00.000Z',
    finishedAt: '2026-11-23T08:00:02.500Z',
    files: 12,
    bytes: 3 * 1024 ** 2,
    notes: ['SERVICE_MASTER_KEY is not in it.'],
    problem: null,
  };

  it('waits for the end, and says what is in it and what is not; a folder is taken from where the command is', async () => {
    const { requests, env } = await answering({
      adminBackup: { ...DONE, finishedAt: null, files: null, bytes: null },
      adminBackupState: DONE,
    });
    const cwd = folder();
    const { code, stdout, stderr } = await penstock(['admin', 'backup', 'monday'], { cwd, env });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^\/b is a whole backup: 12 files, 3\.0 MiB, in 2\.5 s\./);
    expect(stderr).toContain('SERVICE_MASTER_KEY is not in it.');
    expect(requests[0]?.variables).toEqual({ folder: join(cwd, 'monday') });
  });

  it('is waited for while the server takes no more requests, or an ingress does not reach it', async () => {
    const answers: (GraphqlAnswer | 'cut')[] = [
      { body: { data: { adminBackup: { ...DONE, finishedAt: null } } } },
      { status: 429, body: { error: 'rate_limited', message: 'Too many requests.' } },
      { status: 503, body: '<html>' },
      'cut',
    ];
    const { url } = await fakeServer({
      graphql: () => answers.shift() ?? { body: { data: { adminBackupState: DONE } } },
    });
    const env = { SERVICE_URL: url, SERVICE_API_KEY: 'key' };
    const { code, stdout } = await penstock(['admin', 'backup', '/b'], { cwd: folder(), env });
    expect([code, stdout]).toEqual([0, expect.stringContaining('/b is a whole backup: 12 files')]);
  });

  it('fails where the server does, or was started anew meanwhile', async () => {
    const failed = await answering({ adminBackup: { ...DONE, problem: 'the disk is full' } });
    expect(await penstock(['admin', 'backup', '/b'], { cwd: folder(), env: failed.env })).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('there is no backup: the disk is full'),
    });
    const gone = await answering({ adminBackup: { ...DONE, finishedAt: null }, adminBackupState: null });
    expect(await penstock(['admin', 'backup', '/b'], { cwd: folder(), env: gone.env })).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('was cut off'),
    });
  });
});

describe('penstock admin suspend', () => {
  it('shuts a user out and names what holds their runs, lets in again, and lists who is shut out', async () => {
    const suspendedAt = new Date(Date.now() - 3 * 3_600_000).toISOString();
    const user = { id: 'u-1', login: 'mallory', suspendedBy: 'user/root', suspendedAt };
    const { requests, env } = await answering({ suspendUser: user, unsuspendUser: false, suspendedUsers: [user] });
    expect(await penstock(['admin', 'suspend', 'mallory'], { cwd: folder(), env })).toMatchObject({
      code: 0,
      stderr: expect.stringContaining("'penstock admin pause --key user/u-1'"),
    });
    expect(requests.at(-1)?.variables).toEqual({ login: 'mallory' });
    const listed = await penstock(['admin', 'suspended'], { cwd: folder(), env });
    expect(listed.stdout).toMatch(/^SINCE +LOGIN +BY +ID\n3h +mallory +user\/root +u-1\n$/);
    const lifted = await penstock(['admin', 'unsuspend', 'mallory'], { cwd: folder(), env });
    expect(lifted.stderr).toContain('mallory was not suspended');
    expect((await penstock(['admin', 'suspend'], { cwd: folder() })).code).toBe(2);
  });
});

describe('penstock admin delete-user', () => {
  it('prints what was deleted with a user, and how often', async () => {
    const receipt = { id: 'u-1', login: 'mallory', identities: 1, sessions: 2, secrets: 3, grantsGiven: 0 };
    const { requests, env } = await answering({ deleteUser: receipt });
    const deleted = await penstock(['admin', 'delete-user', 'mallory'], { cwd: folder(), env });
    expect(deleted).toMatchObject({ code: 0, stderr: expect.stringContaining('mallory (u-1) is deleted') });
    expect(deleted.stdout).toMatch(
      /^ +1 {2}accounts[^]*\n +3 {2}secrets\n[^]*\n +0 {2}times that others were let in\n/,
    );
    expect(requests.at(-1)?.variables).toEqual({ login: 'mallory' });
    const json = await penstock(['admin', 'delete-user', 'mallory', '--json'], { cwd: folder(), env });
    expect(JSON.parse(json.stdout)).toEqual(receipt);
  });
});

describe('penstock admin purge', () => {
  const receipt = (more: object): object => ({
    body: { data: { adminPurge: { isDone: true, waitsFor: null, ...more } } },
  });
  const purge = ['admin', 'purge', '--tenant', 'user/1'];

  it('does nothing without --yes and a tenant', async () => {
    const { requests, env } = await answering({ adminPurge: {} });
    const unmeant = await penstock(purge, { cwd: folder(), env });
    expect(unmeant).toMatchObject({ code: 2, stderr: expect.stringContaining('say --yes') });
    expect((await penstock(['admin', 'purge', '--yes'], { cwd: folder(), env })).code).toBe(2);
    expect(requests).toEqual([]);
  });

  it('asks until nothing is left, and prints the sum; what was deleted before a failure too', async () => {
    const answers = [
      receipt({ isDone: false, waitsFor: 'the next call', runs: 900, cancelledRuns: 2 }),
      receipt({ runs: 100, secrets: 3 }),
    ];
    const { url, graphql } = await fakeServer({ graphql: () => (answers.shift() ?? { body: {} }) as GraphqlAnswer });
    const env = { SERVICE_URL: url, SERVICE_API_KEY: 'key' };
    const done = await penstock([...purge, '--cancel', '--yes'], { cwd: folder(), env });
    expect(done).toMatchObject({ code: 0, stderr: expect.stringContaining('Nothing of user/1 is left') });
    expect(done.stdout).toMatch(/^ +1000 {2}runs[^]*\n +2 {2}of them cancelled[^]*\n +3 {2}secrets\n/);
    expect(graphql.map(({ variables }) => variables)).toEqual(Array(2).fill({ tenant: 'user/1', cancel: true }));

    const conflict = { message: 'Runs go on.', extensions: { code: 'CONFLICT' } };
    answers.push(receipt({ isDone: false, waitsFor: 'the next call', runs: 900 }), {
      body: { errors: [conflict] },
    });
    const failed = await penstock([...purge, '--yes', '--json'], { cwd: folder(), env });
    expect(failed).toMatchObject({ code: 4, stderr: expect.stringContaining('Runs go on') });
    expect(JSON.parse(failed.stdout)).toMatchObject({ tenant: 'user/1', isDone: false, runs: 900, secrets: 0 });
  });
});

describe('a server that takes no more requests for a while', () => {
  const full = { status: 429, body: { error: 'too_many_requests', message: 'later' } };

  async function toldBy(words: readonly string[], answers: object[]): Promise<CommandEnd> {
    const { url } = await fakeServer({ graphql: () => (answers.shift() ?? { body: {} }) as GraphqlAnswer });
    return await penstock(words, { cwd: folder(), env: { SERVICE_URL: url, SERVICE_API_KEY: 'key' } });
  }

  it('is waited for by a purge, which goes on counting', async () => {
    const part = { body: { data: { adminPurge: { isDone: false, waitsFor: 'the next call', runs: 900 } } } };
    const rest = { body: { data: { adminPurge: { isDone: true, waitsFor: null, runs: 1 } } } };
    const words = ['admin', 'purge', '--tenant', 'user/1', '--yes', '--json'];
    const { code, stdout, stderr } = await toldBy(words, [part, full, rest]);
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { isDone: true, runs: 901 }]);
    expect(stderr).toContain('takes no more requests from here for now');
  });

  it('is waited for by a rotation of keys', async () => {
    const state = (field: string, sealed: number): object => ({
      body: {
        data: {
          [field]: {
            processes: 1,
            agree: true,
            keys: [
              { id: 'new', state: 'FIRST', sealed: 0, usedBy: 1, mayGo: false },
              { id: 'old', state: 'OTHER', sealed, usedBy: 1, mayGo: sealed === 0 },
            ],
          },
        },
      },
    });
    const answers = [state('adminRotateKey', 5), full, state('adminMasterKeys', 0)];
    const { code, stdout } = await toldBy(['admin', 'rotate-key'], answers);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/old +OTHER +0 +1 +yes/)]);
  });
});

describe('penstock admin dead-letters', () => {
  it('lists what was given up, and sends one of it again', async () => {
    const endedAt = new Date(Date.now() - 3 * 3_600_000).toISOString();
    const letter = { id: 'h_r_1', tenant: 'user/1', url: 'https://a/', event: 'run.completed', runId: 'r', endedAt };
    const { requests, env } = await answering({ adminDeadLetters: [letter], adminRedrive: true });
    const listed = await penstock(['admin', 'dead-letters'], { cwd: folder(), env });
    expect(listed.stdout).toMatch(/^GIVEN UP[^]*\n3h +user\/1 +run\.completed +r .*h_r_1\n$/);
    const again = await penstock(['admin', 'dead-letters', 'redrive', 'h_r_1'], { cwd: folder(), env });
    expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining('h_r_1 is sent again') });
    expect(requests.at(-1)?.variables).toEqual({ id: 'h_r_1' });
    for (const words of [
      ['dead-letters', 'redrive'],
      ['dead-letters', 'x'],
      ['drain', 'a', 'b'],
    ])
      expect((await penstock(['admin', ...words], { cwd: folder(), env })).code).toBe(2);
  });
});
