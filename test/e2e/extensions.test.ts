/** Extensions as users meet them: the commands of the documentation, and the same events on a laptop and on a server. */
import { readFileSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startServer, type RunningServer } from '../support/server.ts';
import { comparable, type CommandEnd, Desk, publishSuite } from './extension-desk.ts';

const PAGE = readFileSync(fileURLToPath(new URL('../../docs/extensions.md', import.meta.url)), 'utf8');

describe('one server', () => {
  let server: RunningServer;
  const desks: Desk[] = [];
  const desk = (env: Readonly<Record<string, string>> = {}): Desk => {
    const made = new Desk({ SERVICE_URL: server.url, SERVICE_API_KEY: server.apiKey, ...env });
    desks.push(made);
    return made;
  };

  beforeAll(async () => {
    server = await startServer();
  });
  afterAll(async () => {
    await server.stop();
    rmSync(server.dataDir, { recursive: true, force: true });
    for (const each of desks) each.remove();
  });

  it('a new user makes, tests, publishes and uses an extension by the five commands of the documentation', async () => {
    const [, after = ''] = PAGE.split('## Five commands');
    const commands = (/^```sh\n(.*?)^```$/ms.exec(after)?.[1] ?? '')
      .trim()
      .split('\n')
      .map((line) => line.split(' '));
    expect(commands.map(([program]) => program)).toEqual(Array.from({ length: 5 }, () => 'penstock'));
    const mine = desk();
    mine.write({ '.pipeline.yaml': /^```yaml\n(.*?)^```$/ms.exec(after)?.[1] ?? '' });
    const ends: CommandEnd[] = [];
    for (const [, ...args] of commands) {
      const end = await mine.penstock(args);
      expect(end, args.join(' ')).toMatchObject({ code: 0 });
      ends.push(end);
    }
    expect(ends[1]?.stderr).toContain('output greeting=Hello, world');
    expect(ends[2]?.stdout).toContain('Published utility/hello 0.1.0');
    expect(ends[4]?.stdout).toContain('It said Bonjour, world');
    // Published again it changes nothing; changed bytes are another version.
    expect((await mine.penstock(['extension', 'publish', 'hello'])).stdout).toContain('Was published already');
    mine.write({ 'hello/new.txt': 'x' });
    expect(await mine.penstock(['extension', 'publish', 'hello'])).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('CONFLICT') as unknown,
    });
  });

  it('a local and a triggered run of the same file tell the same events', async () => {
    const mine = desk();
    await publishSuite(mine);
    const local = await mine.penstock(['run', '--json']);
    const triggered = await mine.penstock(['trigger', '--json']);
    expect([local.code, triggered.code], `${local.stderr}${triggered.stderr}`).toEqual([0, 0]);
    expect(comparable(local)).toEqual(comparable(triggered));
    expect(local.stdout).toContain('1.os-linux-os-linux SUCCESS');
    // The same again from the lock and the cache, with no server to ask.
    expect(await mine.penstock(['lock'])).toMatchObject({ code: 0 });
    const offline = await mine.penstock(['run', '--json'], { SERVICE_URL: 'http://127.0.0.1:1' });
    expect(offline.code, offline.stderr).toBe(0);
    expect(comparable(offline)).toEqual(comparable(local));
  });

  it('a yanked version is used by those who locked it, and by nobody else', async () => {
    const [first, second] = [desk(), desk()];
    first.write({
      'once/extension.yaml': 'id: utility/once\nversion: 1.0.0\ndescription: d\nrun: echo once\n',
      '.pipeline.yaml': 'pipeline: {name: p}\nstages:\n  a: {uses: utility/once@^1}\n',
    });
    second.write({ '.pipeline.yaml': 'pipeline: {name: p}\nstages:\n  a: {uses: utility/once@^1}\n' });
    for (const args of [['extension', 'publish', 'once'], ['lock'], ['extension', 'yank', 'utility/once@1.0.0']])
      expect(await first.penstock(args), args.join(' ')).toMatchObject({ code: 0 });
    expect(await first.penstock(['trigger'])).toMatchObject({ code: 0 });
    expect(await first.penstock(['run'])).toMatchObject({ code: 0 });
    for (const command of ['run', 'trigger', 'lock']) {
      expect(await second.penstock([command])).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/yanked[^]*\.pipeline\.yaml:3:13/) as unknown,
      });
    }
    expect(await first.penstock(['extension', 'yank', '--undo', 'utility/once@1.0.0'])).toMatchObject({ code: 0 });
    expect(await second.penstock(['run'])).toMatchObject({ code: 0 });
  });

  it('what cannot be resolved is refused at its place, with what may have been meant', async () => {
    const mine = desk();
    mine.write({ '.pipeline.yaml': 'pipeline: {name: p}\nstages:\n  a:\n    uses: build/nod@^1\n' });
    for (const command of ['run', 'trigger', 'lock']) {
      const { code, stderr } = await mine.penstock([command]);
      expect([code, stderr], command).toEqual([
        2,
        expect.stringMatching(
          /build\/nod[^]*\.pipeline\.yaml:4:11[^]*build\/node|build\/nod[^]*build\/node[^]*\.pipeline\.yaml:4:11/,
        ),
      ]);
    }
  });

  it('signatures are made, checked and shown', async () => {
    const mine = desk();
    expect(await mine.penstock(['extension', 'init', 'utility/signed'])).toMatchObject({ code: 0 });
    expect(await mine.penstock(['extension', 'keygen', 'my.key', '--register'])).toMatchObject({ code: 0 });
    const published = await mine.penstock(['extension', 'publish', 'signed', '--key', 'my.key']);
    expect([published.code, published.stdout], published.stderr).toEqual([0, expect.stringContaining(', signed,')]);
    expect((await mine.penstock(['extension', 'info', 'utility/signed'])).stdout).toMatch(/0\.1\.0 .* signed/);
  });
});
