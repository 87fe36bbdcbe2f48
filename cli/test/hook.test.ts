import { describe, expect, it } from 'vitest';
import { folder, penstock } from './command.ts';
import { answering } from './fake-server.ts';

const HOOK = {
  id: '3f9a',
  url: 'https://chat.example/in',
  events: ['run.completed'],
  repository: null,
  createdAt: '2026-01-02T03:00:00.000Z',
  active: true,
  failingSince: null,
  lastError: null,
};
const DELIVERY = {
  id: '3f9a_0192_000000001',
  event: 'run.completed',
  runId: '0192',
  version: 7,
  status: 'DELIVERED',
  attempts: 1,
  createdAt: '2026-01-02T03:00:00.000Z',
  attemptedAt: '2026-01-02T03:00:01.000Z',
  nextAttemptAt: null,
  responseStatus: 204,
  responseMs: 12,
  error: null,
};

describe('penstock hook', () => {
  it('makes one, and prints nothing but its secret on standard output', async () => {
    const { env, requests } = await answering({ createHook: { ...HOOK, secret: 'whsec_abc=' } });
    const asked = ['hook', 'create', HOOK.url, '--event', 'run.completed', '--event', 'run.started'];
    const { code, stdout, stderr } = await penstock(asked, { cwd: folder(), env });
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'whsec_abc=\n' });
    expect(stderr).toContain('The webhook 3f9a tells https://chat.example/in');
    expect(requests[0]?.variables).toMatchObject({ url: HOOK.url, events: ['run.completed', 'run.started'] });
    await penstock(['hook', 'create', HOOK.url], { cwd: folder(), env });
    expect(requests[1]?.variables).toMatchObject({
      events: ['run.started', 'run.completed', 'stage.completed', 'approval.requested'],
    });
  });

  it('lists them, and says of those that fail why and what helps', async () => {
    const off = {
      ...HOOK,
      active: false,
      failingSince: '2026-01-02T03:00:00.000Z',
      lastError: 'it answered \u001b[31m500',
    };
    const { env } = await answering({ hooks: [HOOK, { ...off, id: 'b', active: true }, off] });
    const { code, stdout, stderr } = await penstock(['hook', 'ls'], { cwd: folder(), env });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^STATE +EVENTS +REPOSITORY +URL +ID\non .*3f9a\nfailing .*b\noff .*3f9a\n$/);
    expect(stderr).toContain('b: nothing is taken since 2026-01-02 03:00:00Z: it answered');
    expect(stderr).toContain('it is switched off: mend the receiver');
    expect(stderr).not.toContain('\u001b');
    const none = await answering({ hooks: [] });
    expect((await penstock(['hook', 'ls'], { cwd: folder(), env: none.env })).stderr).toContain('no webhooks');
  });

  it('shows what one was sent, and sends it again', async () => {
    const failed = { ...DELIVERY, status: 'DEAD', responseStatus: null, error: 'nobody listens there' };
    const { env } = await answering({ hookDeliveries: [DELIVERY, failed], redeliverHook: DELIVERY });
    const { stdout } = await penstock(['hook', 'deliveries', '3f9a'], { cwd: folder(), env });
    expect(stdout).toMatch(/\ndelivered +run\.completed +0192 +204 +2026-01-02 03:00:01Z +3f9a_0192_000000001\n/);
    expect(stdout).toMatch(/\ndead .* nobody listens there /);
    const again = await penstock(['hook', 'redeliver', DELIVERY.id], { cwd: folder(), env });
    expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining('is sent again') as unknown });
  });

  it('removes one, and says so where there is none', async () => {
    const { env } = await answering({ deleteHook: true });
    expect(await penstock(['hook', 'rm', '3f9a'], { cwd: folder(), env })).toMatchObject({ code: 0 });
    const none = await answering({ deleteHook: false });
    expect(await penstock(['hook', 'rm', '3f9a'], { cwd: folder(), env: none.env })).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('penstock hook ls') as unknown,
    });
  });

  it.each([
    [['hook', 'creat', 'https://a.example'], "did you mean 'hook create'?"],
    [['hook', 'create'], 'needs the address to tell'],
    [['hook', 'rm'], "'hook rm' needs the id of a webhook"],
    [['hook', 'redeliver'], 'needs the id of a delivery'],
    [['hook', 'ls', 'a1'], 'takes no argument'],
  ])('%j is wrong usage', async (args, message) => {
    expect(await penstock(args, { cwd: folder() })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(message) as unknown,
    });
  });
});
