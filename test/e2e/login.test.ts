/** A person logs in with the command on a fresh machine: device flow, runs of their own, personal tokens, logout. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Browser } from '@penstock/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startServer, temporaryFolder, type RunningServer } from '../support/server.ts';

const MAIN = fileURLToPath(new URL('../../cli/src/main.ts', import.meta.url));
const folder = temporaryFolder('penstock-login-');
let server: RunningServer;

beforeAll(async () => {
  server = await startServer({ env: { SERVICE_ADMINS: 'sub:root' } });
  writeFileSync(join(folder.path, '.pipeline.yaml'), 'pipeline: {name: own}\nstages: {a: {run: "echo said by me"}}\n');
});
afterAll(async () => {
  await server.stop();
  folder.remove();
});

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The command as this user has it: with settings of their own, and no key of the server's. */
async function penstock(
  args: readonly string[],
  env: Record<string, string> = {},
  onError: (text: string) => void = () => {},
): Promise<Ended> {
  const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('SERVICE_')));
  const child = spawn(process.execPath, [MAIN, ...args], {
    cwd: folder.path,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...inherited, XDG_CONFIG_HOME: join(folder.path, 'settings'), SERVICE_URL: server.url, ...env },
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
    onError(stderr);
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stdout, stderr };
}

/** Approves what the command shows, as a person with a browser would. */
async function approve(address: string, userCode: string, login: string): Promise<void> {
  const browser = new Browser();
  const who = await browser.follow(address);
  const identified = await browser.submit(who, { login });
  const consent = await browser.submit(identified, { decision: 'allow' });
  expect(consent.answer.text).toContain(userCode);
  const done = await browser.submit(consent, { decision: 'allow' });
  expect(done.answer.text).toContain('The device is logged in');
}

async function login(name: string): Promise<Ended> {
  let approval: Promise<void> | undefined;
  const ended = await penstock(['login'], {}, (text) => {
    const [, address, code] = /Open (\S+)\nand allow the code (\S+)/u.exec(text) ?? [];
    if (address !== undefined && code !== undefined) approval ??= approve(address, code, name);
  });
  await approval;
  return ended;
}

async function graphql(
  query: string,
  token: string,
): Promise<{ data: Record<string, unknown> | null; errors?: { extensions: { code: string } }[] }> {
  const response = await fetch(`${server.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ query }),
  });
  return (await response.json()) as never;
}

it('login, whoami, trigger, tokens and logout work with nothing set up anywhere', async () => {
  expect(await login('ada')).toMatchObject({ code: 0, stderr: expect.stringContaining('as ada') });
  const me = JSON.parse((await penstock(['whoami', '--json'])).stdout) as { id: string };
  expect(me).toMatchObject({ git_host_login: 'ada', tier: 'free', is_admin: false });

  const followed = await penstock(['trigger', '--json']);
  expect([followed.code, followed.stdout]).toEqual([0, expect.stringContaining('said by me')]);

  const { stdout } = await penstock(['token', 'create', 'scripts', '--scope', 'read']);
  const token = stdout.trim();
  expect(token).toMatch(/^svc_[0-9A-Za-z]{37}$/u);
  expect(await graphql('{ runs { pipelineName } }', token)).toMatchObject({
    data: { runs: [{ pipelineName: 'own' }] },
  });
  expect(await graphql('mutation { triggerPipeline(yaml: "x") { run { id } } }', token)).toMatchObject({
    data: null,
    errors: [{ extensions: { code: 'FORBIDDEN' } }],
  });
  expect(await graphql('{ me { id } }', token)).toMatchObject({
    data: null,
    errors: [{ extensions: { code: 'UNAUTHENTICATED' } }],
  });
  const [listed] = JSON.parse((await penstock(['token', 'list', '--json'])).stdout) as { id: string; name: string }[];
  expect(listed).toMatchObject({ name: 'scripts', scopes: ['read'] });
  expect((await penstock(['token', 'revoke', listed?.id ?? ''])).code).toBe(0);
  expect(await graphql('{ health }', token)).toMatchObject({
    data: null,
    errors: [{ extensions: { code: 'UNAUTHENTICATED' } }],
  });

  expect((await penstock(['logout'])).code).toBe(0);
  expect(await penstock(['whoami'])).toMatchObject({
    code: 4,
    stderr: expect.stringContaining('you are not logged in'),
  });
  expect(await login('root')).toMatchObject({ code: 0 });
  expect((await penstock(['whoami'])).stdout).toContain(', admin, on ');
}, 120_000);
