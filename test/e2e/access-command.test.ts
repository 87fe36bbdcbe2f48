/** Two people with the command on a real server: one lets the other into a repository, and takes that back. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Browser } from '@penstock/testkit';
import { deviceLogin, type Login } from '../support/device-login.ts';
import { startServer, temporaryFolder, type RunningServer } from '../support/server.ts';

const MAIN = fileURLToPath(new URL('../../cli/src/main.ts', import.meta.url));
const REPOSITORY = 'ada/shop';

interface Said {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const folder = temporaryFolder('penstock-access-');
let server: RunningServer;
let ada: Login;

/** The command of one person, who keeps their logins for themselves; `onSaid` sees what it says on standard error so far. */
async function penstock(who: string, args: readonly string[], onSaid?: (text: string) => void): Promise<Said> {
  const config = join(folder.path, who);
  mkdirSync(config, { recursive: true });
  const env = { ...process.env, SERVICE_URL: server.url, XDG_CONFIG_HOME: config };
  const child = spawn(process.execPath, [MAIN, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
    onSaid?.(stderr);
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stdout, stderr };
}

/** `penstock login`, and what somebody does at the address that it shows. */
async function logIn(who: string): Promise<Said> {
  let approval: Promise<void> | undefined;
  const approve = async (address: string): Promise<void> => {
    const browser = new Browser();
    const page = await browser.submit(await browser.follow(address), {});
    const consent = await browser.submit(await browser.submit(page, { login: who }), { decision: 'allow' });
    await browser.submit(consent, { decision: 'allow' });
  };
  const said = await penstock(who, ['login'], (text) => {
    const address = /https?:\/\/\S+user_code=\S+/.exec(text)?.[0];
    if (address !== undefined) approval ??= approve(address);
  });
  await approval;
  return said;
}

beforeAll(async () => {
  server = await startServer({ env: { SERVICE_PUBLIC_READ: 'false' } });
  ada = await deviceLogin(server.url, 'ada');
  const answer = await fetch(`${server.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${ada.access_token}` },
    body: JSON.stringify({
      query: `mutation { connectRepository(provider: "git_host_a", repository: "${REPOSITORY}") { id } }`,
    }),
  });
  const said = await answer.text();
  if (said.includes('"errors"')) throw new Error(said);
});
afterAll(async () => {
  await server.stop();
  folder.remove();
});

describe('penstock access', () => {
  it('asks whoever has not logged in to do that first', async () => {
    const { code, stderr } = await penstock('nobody', ['access', 'mine']);
    expect([code, stderr]).toEqual([4, expect.stringContaining('you are not logged in')]);
  });

  it('lets somebody in with a role, shows it to both, and takes it back', async () => {
    for (const who of ['ada', 'bob']) expect(await logIn(who)).toMatchObject({ code: 0 });
    const as = (who: string, ...args: readonly string[]): Promise<Said> => penstock(who, ['access', ...args]);
    expect(await as('ada', 'ls', REPOSITORY)).toMatchObject({ code: 0, stderr: 'penstock: nobody else has access.\n' });

    const granted = await as('ada', 'grant', REPOSITORY, '--login', 'bob', '--role', 'trigger');
    expect(granted).toMatchObject({ code: 0, stderr: expect.stringContaining('bob has the role trigger') as string });
    expect((await as('ada', 'ls', REPOSITORY)).stdout).toMatch(/^bob +trigger/m);
    expect((await as('bob', 'mine')).stdout).toMatch(new RegExp(`^trigger +git_host_a +${REPOSITORY}$`, 'm'));

    // Somebody who was let in lets nobody else in.
    const passedOn = await as('bob', 'grant', REPOSITORY, '--login', 'eve', '--role', 'read');
    expect(passedOn.code).toBe(4);
    expect((await as('ada', 'ls', REPOSITORY, '--json')).stdout).not.toContain('eve');

    const revoked = await as('ada', 'revoke', REPOSITORY, '--login', 'bob');
    expect(revoked).toMatchObject({ code: 0, stderr: expect.stringContaining('no access') as string });
    expect(await as('bob', 'mine')).toMatchObject({
      code: 0,
      stderr: 'penstock: nobody lets you into a repository.\n',
    });
    const again = await as('ada', 'revoke', REPOSITORY, '--login', 'bob');
    expect([again.code, again.stderr]).toEqual([4, expect.stringContaining('see who has')]);
  });

  it('lets somebody leave by themselves, and refuses what makes no sense with a sentence', async () => {
    const as = (who: string, ...args: readonly string[]): Promise<Said> => penstock(who, ['access', ...args]);
    expect(await as('ada', 'grant', REPOSITORY, '--login', 'bob', '--role', 'read')).toMatchObject({ code: 0 });
    expect(await as('bob', 'leave', REPOSITORY)).toMatchObject({ code: 0 });
    expect((await as('ada', 'ls', REPOSITORY)).stderr).toBe('penstock: nobody else has access.\n');
    const wrong = await as('ada', 'grant', REPOSITORY, '--login', 'bob', '--role', 'king');
    expect(wrong.code).toBe(4);
    expect(wrong.stderr).toContain('king');
    expect((await as('ada', 'grant', REPOSITORY, '--login', 'bob')).code).toBe(2);
    expect((await as('ada', 'ls', 'ada/nothing')).code).toBe(4);
  });
});
