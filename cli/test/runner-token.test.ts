/** `penstock runner-token`: what is asked of the server, and what of its answer is shown. */
import { describe, expect, it } from 'vitest';
import { folder, penstock } from './command.ts';
import { answering } from './fake-server.ts';

const TOKEN = {
  id: 't1',
  name: 'rack\u001b[31m 4',
  token: 'rt_secret',
  labels: ['gpu', 'big'],
  untrusted: false,
  tenant: null,
  createdAt: '2026-01-01T00:00:00.000Z',
  expiresAt: '2026-04-01T00:00:00.000Z',
};
const RUNNERS = [{ id: 'fr_1', name: 'box', admittedUntil: '2026-01-01T01:00:00.000Z' }];

describe('penstock runner-token', () => {
  it('creates a token, which alone goes to standard output', async () => {
    const { requests, env } = await answering({ createRunnerToken: TOKEN });
    const options = ['--name', 'rack 4', '--label', 'gpu', '--label', 'big', '--expires', '90d', '--tenant', 'service'];
    const { code, stdout, stderr } = await penstock(['runner-token', 'create', ...options], { cwd: folder(), env });
    expect([code, stdout]).toEqual([0, 'rt_secret\n']);
    expect(stderr).toContain('The runner token t1 is shown this once');
    expect(stderr).not.toContain('rt_secret');
    expect(requests.at(-1)).toMatchObject({
      variables: { name: 'rack 4', labels: ['gpu', 'big'], expires: '90d', tenant: 'service', untrusted: false },
    });
  });

  it('lists tokens and how many runners are there by each; nothing of it does anything to the terminal', async () => {
    const { token: _token, ...listed } = TOKEN;
    const answer = {
      runnerTokens: [
        { ...listed, runners: RUNNERS },
        { ...listed, id: 't2', tenant: 'user/7', expiresAt: null, runners: [] },
      ],
    };
    const { env } = await answering(answer);
    const { code, stdout } = await penstock(['runner-token', 'ls'], { cwd: folder(), env });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^NAME +RUNNERS +LABELS +UNTRUSTED +FOR +EXPIRES +ID\n/);
    expect(stdout).toMatch(/\nrack.* +1 +gpu,big +no +all +2026-04-01 +t1\n/);
    expect(stdout).toMatch(/\nrack.* +0 +gpu,big +no +user\/7 +never +t2\n/);
    expect(stdout).not.toContain('\u001b');
  });

  it('revokes one by its id, and says what that did', async () => {
    const { requests, env } = await answering({ revokeRunnerToken: true });
    const { code, stderr } = await penstock(['runner-token', 'revoke', 't1'], { cwd: folder(), env });
    expect(code).toBe(0);
    expect(stderr).toContain('The runner token t1 is revoked, and its runners are cut off.');
    expect(requests.at(-1)).toMatchObject({ variables: { id: 't1' } });
    const without = await penstock(['runner-token', 'revoke'], { cwd: folder(), env });
    expect([without.code, without.stderr]).toEqual([
      2,
      "penstock: 'runner-token revoke' needs the id of a runner token\nTry 'penstock help runner-token'.\n",
    ]);
  });
});
