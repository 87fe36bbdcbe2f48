/** Id tokens of an attempt: files that are replaced in place, for the stage alone, and gone after it. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { machineTime, type Time } from '@penstock/async';
import type { IdTokens, Job, SlipAnswer } from '@penstock/bus';
import { noSecrets, type StageProcess } from '@penstock/executor';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { StageIdTokens, type TokenPlace } from '../src/attempt/stage-id-tokens.ts';
import { TokensInFolder, TokensInside } from '../src/attempt/token-files.ts';

const HOUR = 60 * 60_000;
const job = {
  ...{ runId: 'run-1', stage: 'deploy', attempt: 1, slip: 'signed' },
  idTokens: [
    { audience: 'https://sts.example', variable: 'SERVICE_ID_TOKEN_FILE' },
    { audience: 'https://other.example', variable: 'OTHER' },
  ],
} as unknown as Job;
const tokensOf = (text: string): IdTokens => ({
  tokens: { 'https://sts.example': `${text}-for-sts`, 'https://other.example': `${text}-for-other` },
  lifeMs: HOUR,
});

let folder: string;
let waits: { readonly milliseconds: number; readonly task: () => void; off: boolean }[];
let answers: (SlipAnswer | Error)[];
let asked: boolean[];
let remarks: string[];
let place: TokensInFolder;
const { mask } = noSecrets();

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-id-tokens-'));
  [waits, answers, asked, remarks] = [[], [], [], []];
  place = new TokensInFolder(job, folder, undefined);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function make(at: TokenPlace = place): StageIdTokens {
  const time: Time = {
    ...machineTime,
    after: (milliseconds, task) => {
      const wait = { milliseconds, task, off: false };
      waits.push(wait);
      return () => void (wait.off = true);
    },
  };
  return new StageIdTokens({
    ...{ job, time, place: at },
    onTokens: (tokens) => mask.add(tokens),
    remark: (text) => remarks.push(text),
    desk: {
      present: async (_slip, tokensOnly) => {
        asked.push(tokensOnly);
        const answer = answers.shift();
        if (answer instanceof Error) throw answer;
        return answer ?? { kind: 'refused', why: 'nobody said anything' };
      },
      renewLease: async () => {},
      open: async (sealed) => Buffer.from(sealed),
    },
  });
}

const sealed = (idTokens: object): SlipAnswer => ({
  kind: 'sealed',
  sealed: JSON.stringify({ run: 'run-1', stage: 'deploy', attempt: 1, values: {}, withheld: [], idTokens }),
});
const read = (variable: string): string => readFileSync(place.env[variable] ?? '', 'utf8');

it('each variable names a file that holds its token, and is its owner’s alone; its token is masked', async () => {
  const tokens = make();
  await tokens.begin(tokensOf('first'));
  expect(Object.keys(place.env)).toEqual(['SERVICE_ID_TOKEN_FILE', 'OTHER']);
  expect([read('SERVICE_ID_TOKEN_FILE'), read('OTHER')]).toEqual(['first-for-sts', 'first-for-other']);
  expect(statSync(place.env['OTHER'] ?? '').mode & 0o777).toBe(0o600);
  expect(mask.text('saw first-for-sts')).toBe('saw ***');
  await tokens.end();
  expect(readdirSync(folder)).toEqual([]);
});

it('they are renewed at three quarters of their life, in place, without the secrets, and again after that', async () => {
  const tokens = make();
  await tokens.begin(tokensOf('first'));
  expect(waits.map(({ milliseconds }) => milliseconds)).toEqual([0.75 * HOUR]);
  answers.push(sealed(tokensOf('second')));
  waits[0]?.task();
  await vi.waitFor(() => expect(waits).toHaveLength(2), { timeout: 20_000 });
  expect([read('SERVICE_ID_TOKEN_FILE'), read('OTHER')]).toEqual(['second-for-sts', 'second-for-other']);
  expect(mask.text('saw second-for-other')).toBe('saw ***');
  expect(asked).toEqual([true]);
  await tokens.end();
  expect(waits[1]?.off).toBe(true);
});

it('a renewal that is refused is told and tried again; the old token stays meanwhile', async () => {
  const tokens = make();
  await tokens.begin(tokensOf('first'));
  answers.push(sealed({ why: 'a run that is not trusted gets none' }));
  waits[0]?.task();
  await vi.waitFor(() => expect(waits).toHaveLength(2), { timeout: 20_000 });
  expect(waits[1]?.milliseconds).toBe(60_000);
  expect(remarks).toEqual(['the id token was not renewed: a run that is not trusted gets none']);
  expect(read('OTHER')).toBe('first-for-other');
  await tokens.end();
});

it('a link that the stage puts in the place of its file is replaced, not followed', async () => {
  const outside = join(folder, 'outside');
  writeFileSync(outside, 'untouched');
  const tokens = make();
  await tokens.begin(tokensOf('first'));
  rmSync(place.env['OTHER'] ?? '');
  symlinkSync(outside, place.env['OTHER'] ?? '');
  answers.push(sealed(tokensOf('second')));
  waits[0]?.task();
  await vi.waitFor(() => expect(waits).toHaveLength(2), { timeout: 20_000 });
  expect([read('OTHER'), readFileSync(outside, 'utf8')]).toEqual(['second-for-other', 'untouched']);
  await tokens.end();
});

it('of a stage whose files stay inside each is replaced there, once it runs; what it starts with is told before', async () => {
  const replaced: string[][] = [];
  let process: StageProcess | null = null;
  const inside = new TokensInside(() => process);
  const tokens = make(inside);
  await tokens.begin(tokensOf('first'));
  expect(inside.files).toEqual([
    { variable: 'SERVICE_ID_TOKEN_FILE', content: 'first-for-sts' },
    { variable: 'OTHER', content: 'first-for-other' },
  ]);
  process = {
    ended: new Promise(() => {}),
    startedAtMs: 0,
    stop: () => {},
    replaceFile: (...file) => {
      // Masked before it is anywhere.
      expect(mask.text(file[1])).toBe('***');
      replaced.push(file);
    },
  };
  answers.push(sealed(tokensOf('second')));
  waits[0]?.task();
  await vi.waitFor(() => expect(waits).toHaveLength(2), { timeout: 20_000 });
  expect(replaced).toEqual([
    ['SERVICE_ID_TOKEN_FILE', 'second-for-sts'],
    ['OTHER', 'second-for-other'],
  ]);
  await tokens.end();
  expect(readdirSync(folder)).toEqual([]);
});

it('those of a stage that is taken up are renewed at once: nobody knows how long they are good', async () => {
  const tokens = make();
  answers.push(sealed(tokensOf('again')));
  tokens.takeUp();
  expect(waits.map(({ milliseconds }) => milliseconds)).toEqual([1]);
  waits[0]?.task();
  await vi.waitFor(() => expect(waits).toHaveLength(2), { timeout: 20_000 });
  expect(read('OTHER')).toBe('again-for-other');
  await tokens.end();
});
