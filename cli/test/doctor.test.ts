/** What `penstock doctor` says, also of a machine that lacks the plainest tools. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { controlGroups } from '../src/commands/doctor.ts';

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
