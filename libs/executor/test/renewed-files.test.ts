/** Files that an owner replaces: past whatever a stage puts into their way, in the views of runs, and after the owner was killed. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { UnstartableStage } from '../src/contract/errors.ts';
import { RenewedFiles } from '../src/process/renewed-files.ts';
import { Scratch } from '../src/process/scratch.ts';
import { whySandboxLacks } from '../src/sandbox/probe.ts';
import { makeWorld, titles } from './sandbox-world.ts';

describe('files that an owner replaces', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'penstock-renewed-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const filesIn = (at: string): RenewedFiles => {
    const renewedFiles = [{ variable: 'TOKEN', content: 'first' }];
    const files = RenewedFiles.of(
      { helperKey: 'key', commands: [], env: {}, cwd: '/', timeoutMs: 1, renewedFiles },
      () => '/seen/inside',
    );
    if (files === undefined) throw new Error('there are some');
    files.lay(at);
    return files;
  };

  it('are named to the stage as it sees them, and nobody else reads them', () => {
    const files = filesIn(join(folder, 'own'));
    expect(files.env).toEqual({ TOKEN: '/seen/inside/TOKEN' });
    expect([0o777 & statSync(join(folder, 'own')).mode, 0o777 & statSync(join(folder, 'own', 'TOKEN')).mode]).toEqual([
      0o711, 0o600,
    ]);
    files.close();
    expect(readdirSync(folder)).toEqual([]);
  });

  it('replace a link that stands in their place, and do not follow it', () => {
    const files = filesIn(join(folder, 'own'));
    const victim = join(folder, 'victim');
    writeFileSync(victim, 'untouched');
    rmSync(join(folder, 'own', 'TOKEN'));
    symlinkSync(victim, join(folder, 'own', 'TOKEN'));
    expect(files.replace('TOKEN', 'second')).toBeUndefined();
    expect([readFileSync(join(folder, 'own', 'TOKEN'), 'utf8'), readFileSync(victim, 'utf8')]).toEqual([
      'second',
      'untouched',
    ]);
  });

  it.skipIf(process.platform !== 'linux')('stay in their folder where another one stands under its name', () => {
    const files = filesIn(join(folder, 'own'));
    mkdirSync(join(folder, 'elsewhere'));
    renameSync(join(folder, 'own'), join(folder, 'moved'));
    symlinkSync(join(folder, 'elsewhere'), join(folder, 'own'));
    expect(files.replace('TOKEN', 'second')).toBeUndefined();
    expect(readFileSync(join(folder, 'moved', 'TOKEN'), 'utf8')).toBe('second');
    files.close();
    expect(readdirSync(join(folder, 'elsewhere'))).toEqual([]);
  });

  it('say what could not be replaced, and leave nothing half-written', () => {
    const files = filesIn(join(folder, 'own'));
    rmSync(join(folder, 'own', 'TOKEN'));
    mkdirSync(join(folder, 'own', 'TOKEN'));
    expect(files.replace('TOKEN', 'second')).toMatch(/^the file of TOKEN was not replaced: E[A-Z]+$/);
    expect(files.replace('UNKNOWN', 'second')).toBeUndefined();
    expect(readdirSync(join(folder, 'own'))).toEqual(['TOKEN']);
  });

  it('cannot be had where memory is full, and a full one keeps what is there', (context) => {
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=32k', 'penstock-test', folder], { stdio: 'ignore' });
    } catch {
      context.skip('nothing can be mounted here');
    }
    try {
      const files = filesIn(join(folder, 'own'));
      execFileSync('sh', ['-c', 'cat /dev/zero >"$1/filler" 2>/dev/null || true', 'sh', folder]);
      expect(files.replace('TOKEN', 'second'.repeat(1_000))).toBe('the file of TOKEN was not replaced: ENOSPC');
      expect([readdirSync(join(folder, 'own')), readFileSync(join(folder, 'own', 'TOKEN'), 'utf8')]).toEqual([
        ['TOKEN'],
        'first',
      ]);
      expect(() => filesIn(join(folder, 'another'))).toThrow(UnstartableStage);
      files.close();
    } finally {
      execFileSync('umount', ['-l', folder]);
    }
  });
});

const lacking = await whySandboxLacks(undefined);
const kinds = lacking === null ? (['process', 'sandbox'] as const) : (['process'] as const);
describe.each(titles().flatMap((title) => kinds.map((kind) => [kind, title] as const)))(
  'a stage as %s of %s',
  (kind, title) => {
    it('finds its file in a memory that no other stage sees, replaced while it runs', async () => {
      const world = makeWorld(title);
      try {
        const uid = world.users?.first;
        const own = {
          key: 'mine',
          run: 'mine',
          uid,
          contents: ['first', 'second', 'third'],
          script: `stat -c '%a %u' "$TOKEN"; stat -f -c %T "$TOKEN"; cat "$TOKEN"; echo; echo next
            until grep -q second "$TOKEN"; do :; done; echo next
            until grep -q third "$TOKEN"; do :; done; echo gone >/dev/shm/left; id -u`,
        };
        const look = {
          key: 'mine',
          run: 'mine',
          uid,
          script: 'ls -A /dev/shm; ls -d /dev/shm/.[a-z]* 2>/dev/null; true',
        };
        const [had, later] = await world.run({ kind, stages: [own, look] });
        expect([had?.exit, had?.system], had?.stderr).toEqual([{ kind: 'exit', code: 0 }, '']);
        const lines = had?.stdout.trim().split('\n') ?? [];
        expect(lines).toEqual(['600 ' + lines.at(-1), 'tmpfs', 'first', 'next', 'next', lines.at(-1)]);
        expect(later?.stdout).toBe('');
      } finally {
        world.remove();
      }
    });
  },
);

const OWNER = `
  import { ProcessExecutor } from ${JSON.stringify(new URL('../src/index.ts', import.meta.url).href)};
  const executor = new ProcessExecutor({ isolations: ['group'], warn: () => {} });
  executor.start(
    { helperKey: 'key', commands: [{ script: 'echo "$TOKEN"; sleep 600', bindings: {} }], env: {}, cwd: '/', timeoutMs: 600_000,
      renewedFiles: [{ variable: 'TOKEN', content: 'canary' }] },
    { write: (stream, bytes) => void process.stdout.write(bytes) },
  );
`;

it('what a killed owner has left where stages share the machine’s memory goes at the next start', async () => {
  const owner = spawn(process.execPath, ['--input-type=module-typescript', '-e', OWNER], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const [path] = (await once(owner.stdout, 'data')) as [Buffer];
    const file = path.toString().trim();
    expect(readFileSync(file, 'utf8')).toBe('canary');
    // Of an owner that lives nothing is touched.
    new Scratch().close();
    expect(existsSync(file)).toBe(true);
    owner.kill('SIGKILL');
    await once(owner, 'close');
    new Scratch().close();
    expect(existsSync(file)).toBe(false);
  } finally {
    owner.kill('SIGKILL');
  }
});
