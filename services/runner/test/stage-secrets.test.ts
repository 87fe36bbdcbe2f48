/** What a stage's slip brings: variables, logins of registries, id tokens, or lines that say what is missing. */
import type { Job, SlipContent } from '@penstock/bus';
import { expect, it } from 'vitest';
import { stageSecrets } from '../src/attempt/stage-secrets.ts';

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const about = { run: 'run-1', stage: 'deploy', attempt: 1, withheld: [] };
const jobOf = (parts: Partial<Job>): Job =>
  ({ runId: 'run-1', stage: 'deploy', attempt: 1, slip: 'signed', ...parts }) as unknown as Job;

async function given(job: Job, content: SlipContent) {
  const desk = {
    present: async () => ({ kind: 'sealed', sealed: '' }) as const,
    renewLease: async () => {},
    open: async () => Buffer.from(JSON.stringify(content)),
  };
  return await stageSecrets(job, desk, () => 0, new AbortController().signal);
}

it('an image’s secret is a login, which is no variable of the stage, and both it and its password are masked', async () => {
  const job = jobOf({ place: { image: { name: 'app', secret: 'LOGIN' } } });
  const found = await given(job, { ...about, values: { LOGIN: base64('robot:canary-4711') } });
  if ('lacking' in found) throw new Error(found.lacking.join());
  expect([...found.logins]).toEqual([['LOGIN', { username: 'robot', password: 'canary-4711' }]]);
  expect([found.secrets.env, found.secrets.files]).toEqual([{}, undefined]);
  expect(found.secrets.mask.text('it is canary-4711')).toBe('it is ***');
});

it('an image’s secret that is no login keeps the stage from starting, and is not shown', async () => {
  const job = jobOf({ place: { services: [{ name: 'db', image: { name: 'db', secret: 'LOGIN' }, env: {} }] } });
  expect(await given(job, { ...about, values: { LOGIN: base64('canary-4711') } })).toEqual({
    lacking: ['the stage cannot start: the secret LOGIN is no login of a registry, which is user:password'],
  });
});

it('id tokens come beside secrets', async () => {
  const job = jobOf({ idTokens: [{ audience: 'sts', variable: 'TOKEN_FILE' }] });
  const idTokens = { tokens: { sts: 'a.b.c' }, lifeMs: 60_000 };
  const found = await given(job, { ...about, values: {}, idTokens });
  expect(found).toMatchObject({ idTokens });
  expect(await given(job, { ...about, values: {}, idTokens: { why: 'a run that is not trusted gets none' } })).toEqual({
    lacking: ['the stage cannot start: it gets no id token: a run that is not trusted gets none'],
  });
});

it.each([{ run: 'run-2' }, { stage: 'build' }, { attempt: 2 }])(
  'an answer for another attempt (%o) gives nothing (P31)',
  async (other) => {
    const job = jobOf({ secrets: [{ name: 'KEY', variable: 'KEY', file: false }] });
    expect(await given(job, { ...about, ...other, values: { KEY: base64('canary-4711') } })).toEqual({
      lacking: [expect.stringContaining('auth answered for another stage')],
    });
  },
);
