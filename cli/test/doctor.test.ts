/** What `penstock doctor` says, also of a machine that lacks the plainest tools. */
import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { controlGroups } from '../src/commands/doctor.ts';
import { version } from '../src/process/version.ts';
import { serverClient } from '../src/server/http-client.ts';
import { serverAddress } from '../src/server/server-address.ts';
import { serverFindings, type ServerFindings } from '../src/server/server-findings.ts';
import { closedPort, fakeServer, type GraphqlAnswer } from './fake-server.ts';

const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url));

interface Finding {
  readonly name: string;
  readonly ok: boolean;
  readonly found: string;
  readonly remedy?: string;
}

async function doctor(args: readonly string[], env = process.env): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [MAIN, 'doctor', ...args], { env });
  return stdout;
}

it('has a line for each thing, and a remedy where it lacks', async () => {
  const lines = (await doctor([])).split('\n');
  for (const name of ['git', 'users', 'processes', 'sandbox', 'containers', 'kubernetes', 'cgroups', 'disk'])
    expect(lines.filter((line) => new RegExp(`^(ok {3}|lacks) ${name} +\\S`).test(line))).toHaveLength(1);
  const lacking = lines.flatMap((line, at) => (line.startsWith('lacks') ? [lines[at + 1] ?? ''] : []));
  for (const remedy of lacking) expect(remedy).toMatch(/^ {19}\S/);
});

it('says in sentences what a machine without tools lacks', async () => {
  const empty = mkdtempSync(join(tmpdir(), 'penstock-doctor-'));
  try {
    const { findings } = JSON.parse(await doctor(['--json'], { ...process.env, PATH: empty })) as {
      findings: Finding[];
    };
    const of = (name: string): Finding | undefined => findings.find((finding) => finding.name === name);
    expect(of('processes')).toEqual({
      name: 'processes',
      ok: false,
      found: 'there is no mkfifo here (package coreutils): no stage can start',
      remedy: 'install coreutils and util-linux: no stage runs without',
    });
    expect(of('git')).toMatchObject({ ok: false, found: 'there is no git' });
    expect(JSON.stringify(findings)).not.toMatch(/ENOENT|spawn/);
  } finally {
    rmSync(empty, { recursive: true, force: true });
  }
});

it('does not ask to install an engine that is there and cannot be used', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-doctor-'));
  try {
    const containers = async (): Promise<Finding | undefined> => {
      const env = { ...process.env, PATH: folder, DOCKER_HOST: 'unix:///nothing-here' };
      const { findings } = JSON.parse(await doctor(['--json'], env)) as { findings: Finding[] };
      return findings.find(({ name }) => name === 'containers');
    };
    const podman = join(folder, 'podman');
    writeFileSync(podman, '#!/bin/sh\necho "Error: runtime not supported" >&2\nexit 126\n', { mode: 0o644 });
    expect(await containers()).toEqual({
      name: 'containers',
      ok: false,
      found: `podman: ${podman} is there, and this user may not execute it; docker: there is no socket of its engine`,
      remedy: expect.stringContaining('an engine is there'),
    });
    chmodSync(podman, 0o755);
    expect(await containers()).toMatchObject({
      found: expect.stringContaining('podman: Error: runtime not supported'),
      remedy: expect.stringContaining('an engine is there'),
    });
    rmSync(podman);
    expect(await containers()).toMatchObject({
      found: expect.stringContaining('podman: it is not installed'),
      remedy: expect.stringContaining('install podman or docker'),
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

it('says what bounds stages by each kind of control groups', () => {
  expect(controlGroups(2)).toMatchObject({ ok: true, found: expect.stringMatching(/^version 2: .*disk is watched$/) });
  expect(controlGroups(1)).toMatchObject({
    ok: true,
    found: expect.stringMatching(/^version 1: .*root’s, or by docker$/),
  });
  expect(controlGroups(null)).toMatchObject({
    ok: false,
    found: expect.stringContaining('watched once a second'),
    remedy: expect.stringContaining('Delegate=yes'),
  });
});

const told = async (answer: (query: string) => GraphqlAnswer['body'], token?: string): Promise<ServerFindings> => {
  const { url } = await fakeServer({ graphql: ({ query }) => ({ body: answer(query) }) });
  return await serverFindings(serverClient(serverAddress(url, {}), { token, source: 'the file key' }));
};
const error = (code: string): GraphqlAnswer['body'] => ({
  data: null,
  errors: [{ message: 'no', extensions: { code } }],
});
const installed = (adminStatus: unknown) => (query: string) =>
  query.includes('adminStatus') ? { data: { adminStatus } } : { data: { version: version() } };

it('says what a server lacks, as far as the caller is told', async () => {
  const lacking = await told(installed({ schedulers: [{ answers: false, trouble: null }], runners: [] }), 'key');
  expect(lacking.findings.map(({ name, ok }) => [name, ok])).toEqual([
    ['server', true],
    ['token', true],
    ['schedulers', false],
    ['runners', false],
  ]);
  for (const { ok, remedy } of lacking.findings) expect(remedy !== undefined).toBe(!ok);
  const whole = await told(
    installed({ schedulers: [{ answers: true, trouble: null }], runners: [{ isDrained: false }] }),
  );
  expect(whole.findings.filter(({ ok }) => !ok).map(({ name }) => name)).toEqual(['token']);
  const drained = await told(
    installed({ schedulers: [{ answers: true, trouble: 'the store is away' }], runners: [{ isDrained: true }] }),
    'key',
  );
  expect(drained.findings.slice(2)).toMatchObject([
    { found: 'the store is away' },
    { found: expect.stringContaining('drained') },
  ]);
  const other = await told(
    (query) => (query.includes('adminStatus') ? error('FORBIDDEN') : { data: { version: '0.0.1' } }),
    'key',
  );
  expect(other).toMatchObject({
    exitCode: 0,
    findings: [
      { name: 'server', ok: false },
      { name: 'token', ok: true },
    ],
  });
});

it('says that no scheduler answers, and what else is known where a question is not answered', async () => {
  const away = await told(
    (query) => (query.includes('adminStatus') ? error('UNAVAILABLE') : { data: { version: version() } }),
    'key',
  );
  expect(away).toMatchObject({
    exitCode: 0,
    findings: [{ ok: true }, { ok: true }, { name: 'schedulers', ok: false }],
  });
  expect(await told(() => error('UNAVAILABLE'), 'key')).toMatchObject({ exitCode: 3, findings: [{ name: 'server' }] });
});

it('ends as every command does where the server refuses the token, or is not there', async () => {
  expect(await told(() => error('UNAUTHENTICATED'), 'key')).toMatchObject({
    exitCode: 4,
    findings: [
      { name: 'token', ok: false, found: expect.stringContaining('does not accept the token from the file key') },
    ],
  });
  const server = `http://127.0.0.1:${await closedPort()}`;
  await expect(doctor(['--json', '--server', server])).rejects.toMatchObject({
    code: 3,
    stdout: expect.stringContaining(`cannot reach the server ${server}`),
  });
});
