import { describe, expect, it } from 'vitest';
import { folder, penstock } from './command.ts';
import { answering } from './fake-server.ts';

const INFO = {
  name: 'NPM_TOKEN',
  repository: null,
  pipeline: 'release',
  refs: ['main', 'v*'],
  createdAt: '2026-01-01T00:00:00.000Z',
  updatedAt: '2026-01-02T00:00:00.000Z',
  lastUsedAt: null,
};
const CANARY = 'canary-4711-value';

describe('penstock secret', () => {
  it('sets a value from standard input, without the line end behind it, and prints it nowhere', async () => {
    const { requests, env } = await answering({ setSecret: INFO });
    const args = ['secret', 'set', 'NPM_TOKEN', '--pipeline', 'release', '--ref', 'main', '--ref', 'v*'];
    const end = await penstock(args, { cwd: folder(), env, input: `${CANARY}\nsecond line\n` });
    expect(end).toMatchObject({ code: 0, stdout: '', stderr: 'The secret NPM_TOKEN is set.\n' });
    expect(requests[0]?.variables).toEqual({
      name: 'NPM_TOKEN',
      value: `${CANARY}\nsecond line`,
      pipeline: 'release',
      refs: ['main', 'v*'],
    });
    const json = await penstock([...args, '--json'], { cwd: folder(), env, input: CANARY });
    expect(JSON.parse(json.stdout)).toEqual(INFO);
    expect(JSON.stringify([end, json])).not.toContain(CANARY);
  });

  it('reads the value before it asks the server, and refuses none and too much', async () => {
    const { requests, env } = await answering({ setSecret: INFO });
    for (const [input, message] of [
      ['', 'it is empty'],
      ['\n', 'it is empty'],
      ['x'.repeat(70_000), 'more than 65536 bytes'],
      ['abcd\0efgh', 'holds a NUL, which no variable can hold'],
      [Buffer.from([0x61, 0xff, 0x62, 0x63, 0x64]), 'no UTF-8 text: give a secret that is bytes as base64'],
    ] as const) {
      const { code, stderr } = await penstock(['secret', 'set', 'A'], { cwd: folder(), env, input });
      expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
    }
    expect(requests).toEqual([]);
  });

  it('takes no value from its arguments', async () => {
    expect(await penstock(['secret', 'set', 'A', CANARY], { cwd: folder() })).toMatchObject({ code: 2 });
  });

  it('lists names without values', async () => {
    const { env } = await answering({ secrets: [INFO] });
    expect((await penstock(['secret', 'ls'], { cwd: folder(), env })).stdout).toBe(
      'NAME       REPOSITORY  PIPELINE  REFS     UPDATED                   LAST USED\nNPM_TOKEN  -           release   main,v*  2026-01-02T00:00:00.000Z  -\n',
    );
    expect(JSON.parse((await penstock(['secret', 'ls', '--json'], { cwd: folder(), env })).stdout)).toEqual([INFO]);
  });

  it('removes, and says so where there was none', async () => {
    const there = await answering({ deleteSecret: true });
    expect(await penstock(['secret', 'rm', 'A'], { cwd: folder(), env: there.env })).toMatchObject({ code: 0 });
    expect(there.requests[0]?.variables).toEqual({ name: 'A' });
    const gone = await answering({ deleteSecret: false });
    expect(await penstock(['secret', 'rm', 'A'], { cwd: folder(), env: gone.env })).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('there is no secret A'),
    });
  });

  it.each([
    [['secret', 'sett', 'A'], "did you mean 'secret set'?"],
    [['secret', 'set'], 'needs the name'],
    [['secret', 'ls', 'A'], 'takes no argument'],
    [['secret'], 'what about secrets?'],
  ])('refuses %j with exit code 2', async (args, message) => {
    const { code, stderr } = await penstock(args, { cwd: folder() });
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  });
});
