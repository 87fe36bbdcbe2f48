import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ferretdbBinary } from './mongodb/ferretdb-binary.ts';
import { javaServer } from './mongodb/java-server.ts';
import { reportNotRun, startMongoServer } from './mongodb/index.ts';

describe('finding a server for tests', () => {
  let folder: string;
  let env: NodeJS.ProcessEnv;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'penstock-find-'));
    env = { PATH: process.env['PATH'], XDG_CACHE_HOME: folder };
  });
  afterEach(() => rm(folder, { recursive: true }));

  /** A Go that does as it is told: a line in the log for each build. */
  const fakeGo = async (script: string): Promise<string> => {
    const file = join(folder, 'go');
    await writeFile(file, `#!/bin/sh\necho built >> ${folder}/log\n${script}\n`);
    await chmod(file, 0o755);
    return file;
  };

  it('takes the one that SERVICE_TEST_MONGODB_URL names before all others, and gives each test a database of its own', async () => {
    const server = await startMongoServer({
      ...env,
      SERVICE_TEST_MONGODB_URL: 'mongodb://zoe:pw@db.example:27018/?replicaSet=rs0',
    });
    expect(server).toMatchObject({ host: 'db.example', port: 27018, isAtomic: true });
    if ('missing' in server) return;
    const urls = [server.freshDatabase().url, server.freshDatabase().url];
    expect(new Set(urls).size).toBe(2);
    for (const url of urls)
      expect(url).toMatch(/^mongodb:\/\/zoe:pw@db\.example:27018\/penstock_test_[0-9a-f]{32}\?replicaSet=rs0$/);
  });

  it('builds FerretDB once for all who want it at the same time, and not again', async () => {
    const go = await fakeGo('while [ "$1" != -o ]; do shift; done\nsleep 0.3\necho binary > "$2"');
    const found = await Promise.all([1, 2, 3, 4].map(() => ferretdbBinary(go, env)));
    expect(new Set(found.map((one) => JSON.stringify(one))).size).toBe(1);
    expect(await ferretdbBinary(go, env)).toEqual(found[0]);
    expect((await readFile(join(folder, 'log'), 'utf8')).trim().split('\n')).toHaveLength(1);
    expect((await readdir(join(folder, 'penstock'))).filter((name) => name.endsWith('.lock'))).toEqual([]);
  });

  it('a build that fails says why and leaves nothing, neither a lock nor half a binary', async () => {
    const go = await fakeGo('echo "go: no such module" >&2\nexit 1');
    expect(await ferretdbBinary(go, env)).toEqual({ problem: 'go build ended with 1: go: no such module' });
    expect(
      await ferretdbBinary(await fakeGo('while [ "$1" != -o ]; do shift; done\necho binary > "$2"'), env),
    ).toHaveProperty('path');
  });

  it('has the classes of mongo-java-server by Maven and a JDK once; where one of them fails it says which, and why', async () => {
    const fake = async (name: string, script: string): Promise<string> => {
      const file = join(folder, name);
      await writeFile(file, `#!/bin/sh\n${script}\n`);
      await chmod(file, 0o755);
      return file;
    };
    const maven = await fake('mvn', 'for one; do case $one in -DoutputDirectory=*) mkdir -p "${one#*=}";; esac; done');
    const javac = await fake('javac', 'while [ "$1" != -d ]; do shift; done\nmkdir "$2"');
    expect(await javaServer(await fake('away', 'echo "no such host"; exit 1'), javac, env)).toEqual({
      problem: 'mvn ended with 1: no such host',
    });
    expect(await javaServer(maven, await fake('old', 'echo "release 17 not supported" >&2; exit 2'), env)).toEqual({
      problem: 'javac ended with 2: release 17 not supported',
    });
    const built = await javaServer(maven, javac, env);
    expect('path' in built ? (await readdir(built.path)).toSorted() : built).toEqual(['classes', 'lib']);
    expect(await javaServer('/none', '/none', env)).toEqual(built);
  });

  it('a lock whose holder has ended does not hold', async () => {
    const go = await fakeGo('while [ "$1" != -o ]; do shift; done\necho binary > "$2"');
    const found = await ferretdbBinary(go, env);
    const binary = 'path' in found ? found.path : '';
    await rm(binary);
    await mkdir(join(folder, 'penstock'), { recursive: true });
    // No process has this number: it is above the kernel's highest.
    await writeFile(`${join(binary, '..')}.lock`, '4194305');
    expect(await ferretdbBinary(go, env)).toEqual({ path: binary });
  });

  it('what cannot be run is told in the file for it', async () => {
    const before = process.env['PENSTOCK_NOT_RUN_FILE'];
    process.env['PENSTOCK_NOT_RUN_FILE'] = join(folder, 'not-run');
    reportNotRun('this: no server');
    if (before === undefined) delete process.env['PENSTOCK_NOT_RUN_FILE'];
    else process.env['PENSTOCK_NOT_RUN_FILE'] = before;
    expect(await readFile(join(folder, 'not-run'), 'utf8')).toBe('this: no server\n');
  });
});
