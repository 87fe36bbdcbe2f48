/** Secrets of `penstock run`: from the environment or a file, for the stages that name them alone, masked. */
import { execFileSync } from 'node:child_process';
import { createWriteStream, existsSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { eventsOf, folder, linesOf, outlineOf, penstock, pipeline } from './command.ts';

const CANARY = 'canary/4711+"x"';
const KEY = '-----BEGIN-----\nQm9vbS1yb29z\n-----END-----\n';

describe('secrets of penstock run', () => {
  it('come from a file and from the environment, reach the stages that name them, and are masked', async () => {
    const stages = `
  use:
    secrets: {TOKEN: TOKEN, KEY_FILE: {secret: DEPLOY_KEY, file: true}}
    outputs: [told]
    run: |
      echo "token: $TOKEN, $(printf %s "$TOKEN" | base64)"
      cat "$KEY_FILE"; dirname "$KEY_FILE"
      echo "bytes: $(wc -c < "$KEY_FILE") of \${#TOKEN}"
      echo made-here >> "$SERVICE_MASK"; echo "mine: made-here"
      echo "told=$TOKEN" >> "$SERVICE_OUTPUT"
  other:
    after: use
    run: |
      echo "inherited: [\${TOKEN-}\${DEPLOY_KEY-}]"
      echo "told: \${{ stages.use.outputs.told }}"
`;
    const cwd = folder({ ...pipeline(stages), 'secrets.env': `TOKEN=not-this-one\nDEPLOY_KEY="${KEY}"\n` });
    const { code, stdout, stderr } = await penstock(
      ['run', '--json', '--secret-file', 'secrets.env', '--secret', 'TOKEN'],
      { cwd, env: { TOKEN: CANARY } },
    );
    expect([code, stderr], stdout).toEqual([0, '']);
    const all = eventsOf(stdout);
    expect(linesOf(all, 'use')).toEqual([
      'token: ***, ***',
      '***',
      expect.stringMatching(/^\/.*\/\.penstock-/),
      `bytes: ${KEY.length} of ${CANARY.length}`,
      'mine: ***',
    ]);
    expect(linesOf(all, 'other')).toEqual(['inherited: []', 'told: ***']);
    expect(stdout).not.toContain('4711');
    expect(existsSync(String(linesOf(all, 'use')[2]))).toBe(false);
  });

  it('fail a stage that names one which was not given, before it starts', async () => {
    const cwd = folder(pipeline('  a: {run: echo started, secrets: [TOKEN], retry: 2}'));
    const { code, stdout } = await penstock(['run', '--json'], { cwd, env: { TOKEN: CANARY } });
    const all = eventsOf(stdout);
    expect(code).toBe(1);
    expect(linesOf(all, 'a')).toEqual([
      'the stage cannot start: the secret TOKEN is given by neither --secret nor --secret-file',
    ]);
    expect(all.find(({ type }) => type === 'stage_completed')).toMatchObject({ status: 'FAILED', reason: 'secret' });
    expect(outlineOf(all).filter((line) => line.includes('retry'))).toEqual([]);
  });

  it.each([
    [['--secret', 'NOT_SET'], 'no such variable'],
    [['--secret', `TOKEN=${CANARY}`], 'takes a name and no value'],
    [['--secret', 'SHORT'], 'fewer than 4 characters'],
    [['--secret', 'small'], 'capital letters'],
    [['--secret-file', 'none.env'], 'cannot read secrets from'],
  ])('are refused from %j with exit code 2, and no value is shown', async (args, message) => {
    const cwd = folder(pipeline('  a: {run: echo started}'));
    const env = { SHORT: 'abc', small: CANARY };
    const { code, stdout, stderr } = await penstock(['run', ...args], { cwd, env });
    expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining(message)]);
    expect(stderr).not.toContain('4711');
  });

  it('are read from a pipe to its end, however few bytes it gives at a time', async () => {
    const value = 'v'.repeat(50_000);
    const cwd = folder(pipeline('  a: {run: "echo ${#LAST}", secrets: [LAST]}'));
    const pipe = join(cwd, 'pipe');
    execFileSync('mkfifo', [pipe]);
    const running = penstock(['run', '--json', '--secret-file', 'pipe'], { cwd });
    const writer = createWriteStream(pipe);
    // More than a pipe holds.
    writer.end(`FIRST="${value}"\nSECOND="${value}"\nLAST="${value}"\n`);
    const { code, stdout, stderr } = await running;
    expect([code, stderr, linesOf(eventsOf(stdout), 'a')]).toEqual([0, '', [String(value.length)]]);
  });

  it.each([
    ['a NUL', 'TOKEN=abc\0defgh\n', 'the secret TOKEN holds a NUL, which no variable can hold'],
    ['bytes that are no text', Buffer.from('TOKEN=abc\xffdefgh\n', 'latin1'), 'is no UTF-8 text'],
    ['the name __proto__', '__proto__=abcdefgh\n', "not '__proto__'"],
  ])('are refused from a file with %s, in a sentence with the remedy and no value', async (_what, content, message) => {
    const cwd = folder(pipeline('  a: {run: echo started}'));
    writeFileSync(join(cwd, 'secrets.env'), content);
    const { code, stdout, stderr } = await penstock(['run', '--secret-file', 'secrets.env'], { cwd });
    expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining(message)]);
    expect(stderr).not.toContain('defgh');
  });

  it('are not read from a file of 1 GB', async () => {
    const cwd = folder({ ...pipeline('  a: {run: echo started}'), 'secrets.env': 'TOKEN=abcdefgh\n' });
    truncateSync(join(cwd, 'secrets.env'), 1024 ** 3);
    const { code, stderr } = await penstock(['run', '--secret-file', 'secrets.env'], { cwd });
    expect([code, stderr]).toEqual([2, expect.stringContaining('has more than 1048576 bytes')]);
  });
});
