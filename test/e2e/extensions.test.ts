/** Extensions as users meet them: the commands of the documentation, and the same events on a laptop and on a server. */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startCluster, type Cluster } from '../cluster/cluster.ts';
import { startServer, type RunningServer } from '../support/server.ts';

const COMMAND = fileURLToPath(new URL('../../bootstrap/penstock.js', import.meta.url));
const PAGE = readFileSync(fileURLToPath(new URL('../../docs/extensions.md', import.meta.url)), 'utf8');

interface CommandEnd {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A folder of a user, with a cache of its own. */
class Desk {
  readonly folder = mkdtempSync(join(tmpdir(), 'penstock-desk-'));
  readonly #env: Readonly<Record<string, string>>;

  constructor(env: Readonly<Record<string, string>>) {
    this.#env = env;
  }

  write(files: Readonly<Record<string, string>>): void {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(this.folder, path)), { recursive: true });
      writeFileSync(join(this.folder, path), text);
    }
  }

  async penstock(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<CommandEnd> {
    return await new Promise((resolve) => {
      const options = {
        cwd: this.folder,
        env: {
          PATH: process.env['PATH'],
          HOME: process.env['HOME'],
          XDG_CACHE_HOME: join(this.folder, '.cache'),
          ...this.#env,
          ...env,
        },
        maxBuffer: 1e7,
      };
      execFile(process.execPath, [COMMAND, ...args], options, (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : typeof error.code === 'number' ? error.code : -1, stdout, stderr });
      });
    });
  }

  remove(): void {
    // Packages are unpacked read-only.
    execFile('chmod', ['-R', 'u+w', this.folder], () => rmSync(this.folder, { recursive: true, force: true }));
  }
}

/** Two runs differ in their times, and in how the lines of different stages interleave. */
function comparable({ stdout }: CommandEnd): string[] {
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .filter((line) => !line.startsWith('{"type":"run"'))
    .map((line) => JSON.stringify({ ...(JSON.parse(line) as object), timestamp: 'T' }))
    .toSorted();
}

const SUITE = `id: test/suite
version: 1.0.0
description: Builds for one target and checks it in two ways
inputs:
  target: {required: true}
outputs:
  version: {value: '\${{ stages.compile.outputs.version }}-\${{ inputs.target }}'}
stages:
  compile:
    run: sh "$SERVICE_EXTENSION_PATH/compile.sh"
    outputs: [version]
  greet:
    uses: utility/hello@^0.1
    with: {who: '\${{ stages.compile.outputs.version }}'}
    after: compile
  lint:
    run: exit 3
    after: compile
    allow_failure: true
  clean:
    run: echo "cleaned after \${{ stages.lint.status }}"
    after: [greet, lint]
    when: always()
`;

const PIPELINE = `pipeline: {name: suites}
stages:
  prepare: {run: 'echo prepared'}
  suite:
    uses: test/suite@1
    after: prepare
    with: {target: 'os-\${{ matrix.os }}'}
    matrix: {os: [linux, mac]}
  skipped:
    uses: test/suite@1
    after: prepare
    when: stages.prepare.status == 'FAILED'
    with: {target: never}
  publish:
    run: echo "\${{ stages['suite (os=linux)'].outputs.version }} \${{ stages['suite (os=mac)'].status }}"
    after: suite
`;

async function publishSuite(desk: Desk): Promise<void> {
  desk.write({
    'suite/extension.yaml': SUITE,
    'suite/compile.sh': 'echo "compiling for $INPUT_TARGET"\necho "version=1.$INPUT_TARGET" >> "$SERVICE_OUTPUT"\n',
    '.pipeline.yaml': PIPELINE,
  });
  expect(await desk.penstock(['extension', 'init', 'utility/hello'])).toMatchObject({ code: 0 });
  for (const name of ['hello', 'suite'])
    expect(await desk.penstock(['extension', 'publish', name])).toMatchObject({ code: 0, stderr: '' });
}

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

describe('services as processes', () => {
  let cluster: Cluster;
  let desk: Desk;
  beforeAll(async () => {
    cluster = await startCluster({
      schedulers: 1,
      runners: 1,
      gateways: 1,
      registries: 1,
      auths: 1,
      ingests: 1,
      partitions: 1,
      slots: 2,
    });
    desk = new Desk({ SERVICE_URL: cluster.url, SERVICE_API_KEY: cluster.apiKey });
  });
  afterAll(async () => {
    desk.remove();
    await cluster.stop();
  });

  it('the same file gives the same events when the registry is gone after the lock was taken and the cache is warm', async () => {
    await publishSuite(desk);
    expect(await desk.penstock(['lock'])).toMatchObject({ code: 0 });
    const before = await desk.penstock(['trigger', '--json']);
    expect(before.code, before.stderr).toBe(0);
    await cluster.kill('registry', 0);
    const after = await desk.penstock(['trigger', '--json']);
    const local = await desk.penstock(['run', '--json']);
    expect([after.code, local.code], `${after.stderr}${local.stderr}`).toEqual([0, 0]);
    expect(comparable(after)).toEqual(comparable(before));
    expect(comparable(local)).toEqual(comparable(before));
  });
});
