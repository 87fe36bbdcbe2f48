/** Id tokens of an attempt: masked, given to its stage, and renewed until it ends. */
import { machineTime, type Time } from '@penstock/async';
import type { IdTokens, Job, SlipAnswer } from '@penstock/bus';
import { noSecrets, type StageProcess } from '@penstock/executor';
import { beforeEach, expect, it, vi } from 'vitest';
import { StageIdTokens } from '../src/attempt/stage-id-tokens.ts';
import { TokenFiles } from '../src/attempt/token-files.ts';

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

let waits: { readonly milliseconds: number; readonly task: () => void; off: boolean }[];
let answers: (SlipAnswer | Error)[];
let asked: boolean[];
let remarks: string[];
let files: TokenFiles;
/** What the stage has by now. */
let replaced: Map<string, string>;
let process: StageProcess | null;
const { mask } = noSecrets();

beforeEach(() => {
  [waits, answers, asked, remarks] = [[], [], [], []];
  replaced = new Map();
  files = new TokenFiles(() => process);
  process = {
    ended: new Promise(() => {}),
    startedAtMs: 0,
    stop: () => {},
    replaceFile: (variable, content) => {
      // Masked before it is anywhere.
      if (mask.text(content) === '***') replaced.set(variable, content);
    },
  };
});

function make(): StageIdTokens {
  const time: Time = {
    ...machineTime,
    after: (milliseconds, task) => {
      const wait = { milliseconds, task, off: false };
      waits.push(wait);
      return () => void (wait.off = true);
    },
  };
  return new StageIdTokens({
    ...{ job, time, place: files },
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
const read = (variable: string): string | undefined => replaced.get(variable);

it('each variable is given its token, which is masked', async () => {
  const tokens = make();
  tokens.begin(tokensOf('first'));
  expect([read('SERVICE_ID_TOKEN_FILE'), read('OTHER')]).toEqual(['first-for-sts', 'first-for-other']);
  expect(mask.text('saw first-for-sts')).toBe('saw ***');
  await tokens.end();
});

it('they are renewed at three quarters of their life, in place, without the secrets, and again after that', async () => {
  const tokens = make();
  tokens.begin(tokensOf('first'));
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
  tokens.begin(tokensOf('first'));
  answers.push(sealed({ why: 'a run that is not trusted gets none' }));
  waits[0]?.task();
  await vi.waitFor(() => expect(waits).toHaveLength(2), { timeout: 20_000 });
  expect(waits[1]?.milliseconds).toBe(60_000);
  expect(remarks).toEqual(['the id token was not renewed: a run that is not trusted gets none']);
  expect(read('OTHER')).toBe('first-for-other');
  await tokens.end();
});

it('a stage that has not started is given them when it starts', () => {
  process = null;
  const tokens = make();
  tokens.begin(tokensOf('first'));
  expect(files.files).toEqual([
    { variable: 'SERVICE_ID_TOKEN_FILE', content: 'first-for-sts' },
    { variable: 'OTHER', content: 'first-for-other' },
  ]);
  expect(replaced.size).toBe(0);
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
