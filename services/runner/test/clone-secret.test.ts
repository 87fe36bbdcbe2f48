/** What the repository of an attempt is read with: by its slip, and the lease is renewed only where there is something to be given. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CloneSecret, Job, SlipAnswer, SlipContent } from '@penstock/bus';
import { openMirrors } from '@penstock/git/mirrors';
import { silentLogger } from '@penstock/telemetry';
import { expect, it } from 'vitest';
import { cloneSecretOf, valuesOf } from '../src/attempt/clone-secret.ts';
import { Checkouts } from '../src/workspace/checkouts.ts';

const CLONE: CloneSecret = { name: 'CLONE', opens: { user: 'x-access-token', password: 'canary/4711' } };
const about = { run: 'run-1', stage: 'deploy', attempt: 1, values: {}, withheld: [] };
const jobOf = (parts: Partial<Job> = {}): Job =>
  ({ runId: 'run-1', stage: 'deploy', attempt: 1, cloneSlip: 'signed', ...parts }) as unknown as Job;

function deskOf(answers: readonly SlipAnswer[], content: SlipContent = { ...about, clone: CLONE }) {
  const seen: string[] = [];
  const desk = {
    present: async (slip: string) => {
      seen.push(slip);
      return answers[seen.filter((each) => each === slip).length - 1] ?? ({ kind: 'unavailable' } as const);
    },
    renewLease: async () => void seen.push('renewed'),
    open: async () => Buffer.from(JSON.stringify(content)),
  };
  return { desk, seen };
}
const secretOf = (desk: Parameters<typeof cloneSecretOf>[1], job = jobOf()) =>
  cloneSecretOf(job, desk, () => 0, new AbortController().signal);

it('a repository that nobody has connected is not asked about, and one without a secret of its own costs one question', async () => {
  const { desk, seen } = deskOf([{ kind: 'none' }]);
  expect(await secretOf(desk, jobOf({ cloneSlip: undefined, slip: 'of the stage' }))).toBeUndefined();
  expect(seen).toEqual([]);
  expect(await secretOf(desk)).toBeUndefined();
  expect(seen).toEqual(['signed']);
});

it('what is given is opened once the lease lists the attempt, and is masked in all that it may be written as', async () => {
  const { desk, seen } = deskOf([{ kind: 'unlisted' }, { kind: 'sealed', sealed: '' }]);
  expect(await secretOf(desk)).toEqual(CLONE);
  expect(seen).toEqual(['signed', 'renewed', 'signed']);
  expect(valuesOf(CLONE)).toEqual(['canary/4711', 'canary%2F4711']);
  expect(valuesOf({ name: 'CLONE', opens: { key: 'a key' } })).toEqual(['a key']);
});

it.each([
  [
    { kind: 'refused', why: 'there is no secret CLONE' } as const,
    { ...about, clone: CLONE },
    'there is no secret CLONE',
  ],
  [{ kind: 'sealed', sealed: '' } as const, { ...about, attempt: 2, clone: CLONE }, 'for another stage'],
  [{ kind: 'sealed', sealed: '' } as const, about, 'took its slip for another'],
])(
  'what is not given keeps the stage from its checkout, and nothing else is tried (%o)',
  async (answer, content, why) => {
    await expect(secretOf(deskOf([answer], content).desk)).rejects.toMatchObject({
      tag: 'NotPrepared',
      message: expect.stringContaining(`the workspace could not be checked out: `),
    });
    await expect(secretOf(deskOf([answer], content).desk)).rejects.toThrow(why);
  },
);

it('a host that refuses what it is shown is told of with the name of the secret, and without its value', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-clone-secret-'));
  const server = createServer((_, response) => {
    response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const log = silentLogger();
  const policy = { mode: 'development', allowedHosts: [] } as const;
  const mirrors = openMirrors({ folder: join(folder, 'mirrors'), bytesMax: 1024 ** 2, policy, log });
  const cloneUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/a/b`;
  const job = jobOf({ key: 'user/1', origin: { kind: 'webhook', commit: 'a'.repeat(40), cloneUrl } as Job['origin'] });
  try {
    const checkouts = new Checkouts({ folder: join(folder, 'checkouts'), mirrors, log });
    const fill = checkouts.filling(job, new AbortController().signal, undefined, async () => CLONE);
    const error: unknown = await fill?.(join(folder, 'workspace')).catch((caught: unknown) => caught);
    expect(error).toMatchObject({
      tag: 'NotPrepared',
      message: expect.stringMatching(/denied.*penstock secret set CLONE/u),
    });
    expect(String((error as Error).message)).not.toContain('canary');
  } finally {
    await mirrors.close();
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
