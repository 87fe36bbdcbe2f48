/** Images from a registry: brought where they are missing, with credentials where it wants them. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ContainerExecutor } from '../../src/container/container-executor.ts';
import type { StageExit, StageImage } from '../../src/contract/port.ts';
import { RecordingSink } from '../../src/testing/executor-suite.ts';
import { command, engineForTests, IMAGE } from '../../src/testing-containers/test-images.ts';
import { startTestRegistry, type TestRegistry } from './test-registry.ts';

const found = await engineForTests('images from a registry');
/** Docker takes a registry without TLS on loopback; podman is told of it by a file. */
const engine = found?.kind === 'podman' ? found : null;
const user = process.getuid?.() === 0 ? { uid: 190_004, gid: 190_004 } : undefined;
const AUTH = { username: 'somebody', password: `secret-${randomBytes(6).toString('hex')}` };

describe.skipIf(engine === null)('an image from a registry', () => {
  let executor: ContainerExecutor;
  let open: TestRegistry;
  let closed: TestRegistry;
  let folder: string;
  let names = 0;
  const before = process.env['CONTAINERS_REGISTRIES_CONF'];

  beforeAll(async () => {
    if (engine === null) return;
    folder = mkdtempSync(join(tmpdir(), 'penstock-registries-'));
    open = await startTestRegistry(engine, IMAGE);
    closed = await startTestRegistry(engine, IMAGE, `${AUTH.username}:${AUTH.password}`);
    const registries = [open, closed].map(({ address }) => `[[registry]]\nlocation = "${address}"\ninsecure = true\n`);
    writeFileSync(join(folder, 'registries.conf'), registries.join(''));
    process.env['CONTAINERS_REGISTRIES_CONF'] = join(folder, 'registries.conf');
    executor = new ContainerExecutor({ engine, owner: `registry of ${process.pid}` });
  });
  afterAll(async () => {
    await executor.close();
    await open.close();
    await closed.close();
    if (engine !== null) {
      const all = command(engine, ['images', '--format', '{{.Repository}}:{{.Tag}}']).split('\n');
      const own = all.filter(
        (name) =>
          name.startsWith(open.address) ||
          name.startsWith(closed.address) ||
          name.startsWith('localhost/penstock-private/'),
      );
      if (own.length > 0) command(engine, ['rmi', ...own]);
    }
    if (before === undefined) delete process.env['CONTAINERS_REGISTRIES_CONF'];
    else process.env['CONTAINERS_REGISTRIES_CONF'] = before;
    rmSync(folder, { recursive: true, force: true });
  });

  const nameAt = ({ address }: TestRegistry): string => `${address}/team/image-${(names += 1)}:1`;

  async function run(image: StageImage, helperKey = 'one'): Promise<{ exit: StageExit; said: string }> {
    const sink = new RecordingSink();
    const spec = { commands: [{ script: 'true', bindings: {} }], env: {}, cwd: '/', timeoutMs: 60_000, user };
    const exit = await executor.start({ ...spec, helperKey, place: { image } }, sink).ended;
    return { exit, said: `${sink.text('system')}${sink.text('stderr')}${JSON.stringify(exit)}` };
  }

  const SUCCESS = { kind: 'exit', code: 0 };
  const NOT_HAD = { kind: 'unplaced', reason: 'image' };

  it('is brought where it is missing, once, and its log says so', async () => {
    const name = nameAt(open);
    const first = await run({ name });
    expect(first.exit).toEqual(SUCCESS);
    expect(first.said).toContain(`the image ${name} is being brought`);
    const asked = open.asked;
    expect((await run({ name })).exit).toEqual(SUCCESS);
    expect(open.asked).toBe(asked);
  });

  it('is asked for each time where the stage wants it so', async () => {
    const name = nameAt(open);
    await run({ name, pull: 'always' });
    const asked = open.asked;
    expect((await run({ name, pull: 'always' })).exit).toEqual(SUCCESS);
    expect(open.asked).toBeGreaterThan(asked);
  });

  it('is brought once for stages that need it at the same time', async () => {
    const name = nameAt(open);
    const asked = open.asked;
    const both = await Promise.all([run({ name }), run({ name })]);
    expect(both.map(({ exit }) => exit)).toEqual([SUCCESS, SUCCESS]);
    expect(both.filter(({ said }) => said.includes('is being brought'))).toHaveLength(1);
    expect(open.asked).toBeGreaterThan(asked);
  });

  it('that the registry does not know fails the stage with the reason image', async () => {
    expect((await run({ name: `${open.address}/team/image:unknown` })).exit).toMatchObject(NOT_HAD);
  });

  it('needs the credentials of its registry, which nothing shows', async () => {
    const name = nameAt(closed);
    expect((await run({ name })).exit).toMatchObject(NOT_HAD);
    const bad = await run({ name, auth: { ...AUTH, password: `${AUTH.password}x` } });
    expect(bad.exit).toMatchObject(NOT_HAD);
    const good = await run({ name, auth: AUTH });
    expect(good.exit).toEqual(SUCCESS);
    expect(bad.said + good.said).not.toContain(AUTH.password);
  });

  it('that one key has brought with its credentials is not there for another', async () => {
    const name = nameAt(closed);
    expect((await run({ name, auth: AUTH })).exit).toEqual(SUCCESS);
    const asked = closed.asked;
    expect((await run({ name, auth: AUTH })).exit).toEqual(SUCCESS);
    expect(closed.asked).toBe(asked);
    expect((await run({ name }, 'another')).exit).toMatchObject(NOT_HAD);
    expect((await run({ name, auth: { ...AUTH, password: 'guessed' } }, 'another')).exit).toMatchObject(NOT_HAD);
    expect((await run({ name, auth: AUTH }, 'another')).exit).toEqual(SUCCESS);
  });
});
