/** The commands whose files are put together: the same as their sources, and only for as long as these are the same. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { deserialize, serialize } from 'node:v8';
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { startServer, TRIGGER } from '../support/server.ts';

const repository = join(import.meta.dirname, '../..');
/** The bootstrap is plain JavaScript. */
interface Command {
  madeCommand(root: string, name: string, nodeMajor?: number): string | undefined;
  ensureCommands(options: { readonly root: string; readonly node: string; say(line: string): void }): Promise<void>;
}
const { ensureCommands, madeCommand } = (await import(join(repository, 'bootstrap/command.js'))) as Command;
const MADE = 'node_modules/.cache/penstock-command';

let folder: string;
let root: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'penstock-command-')));
  root = folder;
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(path: string, content: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), content);
}

describe('a command that is put together', () => {
  beforeAll(() => ensureCommands({ root: repository, node: process.execPath, say: () => {} }));

  it('is what a checkout that is tested runs', () => {
    for (const [name, set] of [
      ['run', 'penstock-command'],
      ['serve', 'penstock-server'],
      ['service', 'penstock-server'],
      ['runner', 'penstock-server'],
    ] as const)
      expect(dirname(dirname(madeCommand(repository, name) ?? ''))).toBe(join(repository, 'node_modules/.cache', set));
    expect(madeCommand(repository, 'logs')).toBeUndefined();
  });

  it.each([
    ['run', 'pipeline: {name: x}\nstages: {a: {run: "echo it runs; exit 3"}}\n'],
    ['run', 'pipeline: {name: x}\nstages: {a: {rnu: "true"}}\n'],
    ['validate', 'pipeline: {name: x}\nstages: {a: {run: "true", needs: [b]}}\n'],
    ['graph', 'pipeline: {name: x}\nstages: {a: {run: "true"}, b: {run: "true", needs: [a]}}\n'],
  ])('%s says and ends as by its sources', (name, file) => {
    write('.pipeline.yaml', file);
    const by = (entry: string): unknown => {
      const { status, stdout, stderr } = spawnSync(process.execPath, [join(repository, entry), name], {
        cwd: root,
        env: { ...process.env, XDG_CACHE_HOME: join(root, 'caches') },
        encoding: 'utf8',
      });
      return { status, stdout: timeless(stdout), stderr: timeless(stderr) };
    };
    const bySources = by('cli/src/main.ts');
    expect(by('bootstrap/penstock.js')).toEqual(bySources);
    // What it means is known by now.
    expect(by('bootstrap/penstock.js')).toEqual(bySources);
  });

  it('takes what a file means from the run before, and reads it anew once it is another', () => {
    const run = (): string =>
      spawnSync(process.execPath, [join(repository, 'bootstrap/penstock.js'), 'run'], {
        cwd: root,
        env: { ...process.env, XDG_CACHE_HOME: join(root, 'caches') },
        encoding: 'utf8',
      }).stdout;
    const file = (says: string): string => `pipeline: {name: x}\nstages: {a: {run: "echo ${says}"}}\n`;
    write('.pipeline.yaml', file('from the file'));
    expect(run()).toContain('| from the file');
    const folder = join(root, 'caches/penstock/definitions');
    const [entry = ''] = readdirSync(folder);
    const kept = deserialize(readFileSync(join(folder, entry)));
    kept.definition.stages[0].commands[0].script = 'echo from what is known';
    writeFileSync(join(folder, entry), serialize(kept), { mode: 0o600 });
    expect(run()).toContain('| from what is known');
    write('.pipeline.yaml', file('from another file'));
    expect(run()).toContain('| from another file');
  });

  it('knows nothing of files that something else decides about: what comes through a pipe, or uses extensions', () => {
    const given = { cwd: root, env: { ...process.env, XDG_CACHE_HOME: join(root, 'caches') } };
    const file = 'pipeline: {name: x}\nstages: {a: {run: "echo it uses nothing"}}\n';
    write('.pipeline.yaml', file);
    const entry = join(repository, 'bootstrap/penstock.js');
    const piped = spawnSync(process.execPath, [entry, 'run', '-'], { ...given, input: file.replace('uses', 'has') });
    expect(piped.status).toBe(0);
    expect(spawnSync(process.execPath, [entry, 'run'], given).status).toBe(0);
    expect(existsSync(join(root, 'caches/penstock/definitions'))).toBe(false);
  });

  it.each([
    ['a plain stage', '', []],
    ['a stage with a cache', 'cache: {key: k, paths: [kept]}, ', ['crypto']],
  ])('a run of %s loads of node:crypto and node:zlib what it calls and no more', (_of, keys, loaded) => {
    write('.pipeline.yaml', `pipeline: {name: x}\nstages: {a: {${keys}run: "mkdir -p kept"}}\n`);
    write(
      'told.cjs',
      `process.on('exit', () => require('node:fs').writeFileSync('told', process.moduleLoadList.join()));`,
    );
    const { status } = spawnSync(
      process.execPath,
      ['--require', './told.cjs', join(repository, 'bootstrap/penstock.js'), 'run'],
      { cwd: root, env: { ...process.env, XDG_CACHE_HOME: join(root, 'caches') }, stdio: 'ignore' },
    );
    expect(status).toBe(0);
    const modules = readFileSync(join(root, 'told'), 'utf8').split(',');
    expect(['crypto', 'zlib'].filter((name) => modules.includes(`NativeModule ${name}`))).toEqual(loaded);
  });
});

describe('a server that is put together', () => {
  beforeAll(() => ensureCommands({ root: repository, node: process.execPath, say: () => {} }));

  const madeFiles = (): ReadonlyMap<string, string> => {
    const folder = dirname(madeCommand(repository, 'serve') ?? '');
    const names = readdirSync(folder).filter((name) => name.endsWith('.js'));
    return new Map(names.map((name) => [name, readFileSync(join(folder, name), 'utf8')]));
  };

  it('answers and runs stages, with all that its sources have beside them', async () => {
    const server = await startServer();
    try {
      expect(server.child.spawnargs).toContain(madeCommand(repository, 'serve'));
      const { data, errors } = await server.graphql(TRIGGER, {
        yaml: 'pipeline: {name: x}\nstages: {a: {run: "echo kept > f", artifacts: {paths: [f]}, cache: {key: k, paths: [f]}}}\n',
        waitSeconds: 60,
      });
      expect(errors).toBeUndefined();
      expect(data).toMatchObject({ triggerPipeline: { run: { status: 'SUCCESS' } } });
      expect((await fetch(`${server.url}/dashboard/`)).status).toBe(200);
    } finally {
      expect(await server.stop()).toBe(0);
    }
    expect(server.output()).not.toMatch(/"level":[456]0/);
  });

  it('has the programs of its threads and processes among its files', () => {
    const files = madeFiles();
    for (const [name, text] of files)
      for (const [, program] of text.matchAll(/new URL\(\s*["']\.?\/?([\w-]+\.[jt]s)["']/g))
        expect(files.has(program ?? ''), `${name} names ${program}`).toBe(true);
    expect([...files.keys()].filter((name) => name.endsWith('-ts.js'))).toEqual(
      expect.arrayContaining([
        'libs-artifacts-src-collect-collector-ts.js',
        'libs-parse-pool-src-parse-worker-ts.js',
        'libs-store-src-sqlite-worker-ts.js',
        'services-standalone-src-api-api-worker-ts.js',
      ]),
    );
  });

  it.each([
    ['engine', /^async function runServe\(/m],
    ['API', /the API thread is started by api-thread.ts only/],
  ])('loads no fetch in the thread of its %s: nothing of what it begins with imports node:http', (_of, part) => {
    const files = madeFiles();
    const loaded = new Set([...files].filter(([, text]) => part.test(text)).map(([name]) => name));
    for (const name of loaded)
      for (const [, from] of (files.get(name) ?? '').matchAll(/^(?:import|export)\b[^;]*?["']\.\/([^"']+)["'];/gm))
        loaded.add(from ?? '');
    expect(loaded.size).toBeGreaterThan(10);
    for (const name of loaded)
      expect(files.get(name), name).not.toMatch(/^import\b[^;]*?["'](?:node:)?(?:https?|undici)["'];/m);
  });
});

/** A checkout in which `vite` is what the test says. */
function checkout(vite: string): void {
  write('package-lock.json', '{}');
  write('cli/src/main.ts', '// main');
  write('cli/src/commands.ts', '// commands');
  write('node_modules/vite/package.json', '{"type":"module","exports":"./index.js"}');
  write('node_modules/vite/index.js', vite);
  cpSync(join(repository, 'bootstrap'), join(root, 'bootstrap'), { recursive: true });
}

describe('the files of a command', () => {
  const VITE = `
    import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
    export async function build({ plugins, build: { ssr, outDir } }) {
      for (const { load } of plugins) load?.(ssr);
      mkdirSync(outDir, { recursive: true });
      writeFileSync(outDir + '/main.js', 'console.log("made", ...process.argv.slice(2))');
    }`;
  const said: string[] = [];
  const ensure = (): Promise<void> =>
    ensureCommands({ root, node: process.execPath, say: (line: string) => void said.push(line) });
  beforeEach(() => void said.splice(0));
  afterEach(() => void vi.unstubAllEnvs());

  it('are run until a source or the lockfile is another, and are made anew then, in another place', async () => {
    checkout(VITE);
    expect(madeCommand(root, 'run')).toBeUndefined();
    await ensure();
    expect(madeCommand(root, 'run')).toBe(join(root, MADE, '0/main.js'));
    expect(said).toEqual(['Putting the files of a server together (a few seconds).']);
    await ensure();
    expect(said).toHaveLength(1);
    let place = 0;
    for (const path of ['cli/src/main.ts', 'package-lock.json']) {
      write(path, '// another');
      expect(madeCommand(root, 'run')).toBeUndefined();
      await ensure();
      expect(madeCommand(root, 'run')).toBe(join(root, MADE, `${(place += 1)}/main.js`));
      utimesSync(join(root, path), new Date(1), new Date(1));
      expect(madeCommand(root, 'run')).toBeUndefined();
      await ensure();
      expect(madeCommand(root, 'run')).toBe(join(root, MADE, `${(place += 1) % 4}/main.js`));
    }
    rmSync(join(root, 'cli/src/main.ts'));
    expect(madeCommand(root, 'run')).toBeUndefined();
  });

  it('stay for who runs them when they are made anew, and four of them are kept', async () => {
    checkout(VITE);
    await ensure();
    const first = madeCommand(root, 'serve') ?? '';
    for (let at = 1; at < 4; at += 1) {
      write('cli/src/main.ts', `// ${at}`);
      await ensure();
      expect(madeCommand(root, 'serve')).not.toBe(first);
      expect(existsSync(first)).toBe(true);
    }
    write('cli/src/main.ts', '// the last');
    await ensure();
    expect(madeCommand(root, 'serve')).toBe(first);
    expect(readdirSync(dirname(dirname(first))).toSorted()).toEqual(['0', '1', '2', '3', 'manifest.json']);
  });

  /** Runs a server's files in a process of its own, as those who start one do, until it is killed. */
  async function runningServer(): Promise<{ file: string; kill(): Promise<unknown> }> {
    const program = `
      import { keptForNow, madeCommand } from ${JSON.stringify(pathToFileURL(join(root, 'bootstrap/command.js')).href)};
      console.log(keptForNow(madeCommand(${JSON.stringify(root)}, 'serve')));
      process.stdin.resume();`;
    const child = spawn(process.execPath, ['--input-type=module', '--eval', program]);
    const [file] = await once(child.stdout, 'data');
    const kill = (): Promise<unknown> => {
      child.kill('SIGKILL');
      return once(child, 'exit');
    };
    return { file: String(file).trim(), kill };
  }

  it('stay for who runs them for as long as that lives, however often they are made anew', async () => {
    checkout(VITE);
    await ensure();
    const server = await runningServer();
    expect(server.file).toBe(madeCommand(root, 'serve'));
    writeFileSync(server.file, '// of the start');
    for (let at = 1; at < 7; at += 1) {
      write('cli/src/main.ts', `// ${at}`);
      await ensure();
      expect(madeCommand(root, 'serve')).not.toBe(server.file);
    }
    expect(readFileSync(server.file, 'utf8')).toBe('// of the start');
    // Nobody knows which was the last, and the first place is not free for that.
    rmSync(join(root, 'node_modules/.cache/penstock-server/manifest.json'));
    await ensure();
    expect(readFileSync(server.file, 'utf8')).toBe('// of the start');
    await server.kill();
    for (let at = 7; at < 11; at += 1) {
      write('cli/src/main.ts', `// ${at}`);
      await ensure();
    }
    expect(readFileSync(server.file, 'utf8')).not.toBe('// of the start');
  });

  it('are not made where all places are in use: a line says so, and the sources are run', async () => {
    checkout(VITE);
    const servers = [];
    for (let at = 0; at < 4; at += 1) {
      write('cli/src/main.ts', `// ${at}`);
      await ensure();
      servers.push(await runningServer());
    }
    write('cli/src/main.ts', '// another');
    await ensure();
    expect(said.at(-1)).toContain('all 4 places for them are in use');
    expect(madeCommand(root, 'serve')).toBeUndefined();
    for (const { kill } of servers) await kill();
    await ensure();
    expect(madeCommand(root, 'serve')).toBeDefined();
  });

  it('are not run where one of them is not what was made: cut off by a power cut, or changed', async () => {
    checkout(VITE);
    await ensure();
    const made = madeCommand(root, 'run') ?? '';
    writeFileSync(made, '');
    expect(madeCommand(root, 'run')).toBeUndefined();
    await ensure();
    expect(readFileSync(madeCommand(root, 'run') ?? '', 'utf8')).toContain('made');
    rmSync(join(dirname(madeCommand(root, 'run') ?? ''), 'package.json'));
    expect(madeCommand(root, 'run')).toBeUndefined();
  });

  it('are not run where an archive has given a source the size, the time and the place of the one before', async () => {
    checkout(VITE);
    const source = join(root, 'cli/src/main.ts');
    const at = new Date(1_000_000_000_000);
    utimesSync(source, at, at);
    await ensure();
    write('cli/src/main.ts', '// niam');
    utimesSync(source, at, at);
    expect(madeCommand(root, 'run')).toBeUndefined();
  });

  it.each(['with a space', 'quo\'t"ed', 'a#b', 'a%41', 'a$&b', "a$'b", 'a$$b', '日本'])(
    'find what stands beside a source in a checkout that is called %j',
    async (name) => {
      root = join(folder, name);
      checkout(`
        import { mkdirSync, writeFileSync } from 'node:fs';
        export async function build({ plugins, build: { ssr, outDir } }) {
          mkdirSync(outDir, { recursive: true });
          const { code } = plugins.at(-1).transform('console.log(import.meta.url)', ssr);
          writeFileSync(outDir + '/main.js', code);
        }`);
      await ensure();
      const { stdout } = spawnSync(process.execPath, [madeCommand(root, 'run') ?? ''], { encoding: 'utf8' });
      expect(stdout.trim()).toBe(pathToFileURL(join(root, 'cli/src/main.ts')).href);
    },
  );

  it('have nothing of what lies in folders above or on NODE_PATH, where a package may find an optional one', async () => {
    root = join(folder, 'checkout');
    for (const path of ['node_modules/inside', '../node_modules/above', '../on-path/elsewhere']) {
      write(`${path}/package.json`, '{"main":"index.js"}');
      write(`${path}/index.js`, '');
    }
    checkout(`
      import { mkdirSync, writeFileSync } from 'node:fs';
      export async function build({ plugins, build: { ssr, outDir } }) {
        mkdirSync(outDir, { recursive: true });
        const { resolveId } = plugins.find(({ name }) => name === 'penstock-for-servers') ?? { resolveId: () => null };
        const found = ['inside', 'above', 'elsewhere'].map((id) => resolveId(id, ssr, { kind: 'require-call' }));
        writeFileSync(outDir + '/main.js', JSON.stringify(found));
      }`);
    vi.stubEnv('NODE_PATH', join(folder, 'on-path'));
    await ensure();
    expect(JSON.parse(readFileSync(madeCommand(root, 'serve') ?? '', 'utf8'))).toEqual([
      join(root, 'node_modules/inside/index.js'),
      { id: 'above', external: true },
      { id: 'elsewhere', external: true },
    ]);
  });

  it('are made without the options of a user, by which all sources would be found as packages', async () => {
    checkout(`
      import { mkdirSync, writeFileSync } from 'node:fs';
      export async function build({ build: { outDir } }) {
        mkdirSync(outDir, { recursive: true });
        writeFileSync(outDir + '/main.js', '// made with ' + JSON.stringify(process.env.NODE_OPTIONS));
      }`);
    vi.stubEnv('NODE_OPTIONS', '--preserve-symlinks');
    await ensure();
    expect(readFileSync(madeCommand(root, 'run') ?? '', 'utf8')).toBe('// made with ""');
  });

  it('that cannot be made are one line each, and the sources are run', async () => {
    checkout('export const build = () => { throw new Error("no space left"); };');
    await ensure();
    expect(said.filter((line) => line.includes('no space left'))).toHaveLength(2);
    for (const name of ['run', 'serve']) expect(madeCommand(root, name)).toBeUndefined();
  });

  it('are run at once: what they were made from is in place, and nothing is looked for or installed', async () => {
    checkout(VITE);
    await ensure();
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      [join(root, 'bootstrap/penstock.js'), 'run', 'a b.yaml'],
      { encoding: 'utf8' },
    );
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: 'made run a b.yaml\n', stderr: '' });
  });

  it.each([
    ['an older Node than they were made by', { nodeMajor: 99 }],
    ['another system', { platform: 'elsewhere-x64' }],
  ])('are not run by %s', async (_who, differs) => {
    checkout(VITE);
    await ensure();
    const manifest = join(root, MADE, 'manifest.json');
    writeFileSync(manifest, JSON.stringify({ ...JSON.parse(readFileSync(manifest, 'utf8')), ...differs }));
    expect(madeCommand(root, 'run')).toBeUndefined();
  });

  it('are run where the Node that runs them is new enough, whichever has started', async () => {
    checkout(VITE);
    await ensure();
    expect(madeCommand(root, 'serve', 20)).toBeUndefined();
    expect(madeCommand(root, 'serve', 99)).toBe(join(root, 'node_modules/.cache/penstock-server/0/main.js'));
  });

  it('are not those of another checkout that they were copied from', async () => {
    checkout(VITE);
    await ensure();
    expect(madeCommand(`${root}/.`, 'run')).toBeUndefined();
  });
});

/** Times of a run differ. */
function timeless(text: string): string {
  return text.replaceAll(/\d+\.\d\d s/gu, '0.00 s');
}
