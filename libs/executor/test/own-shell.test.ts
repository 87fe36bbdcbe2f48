import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ProcessExecutor } from '../src/process/executor.ts';
import { needsAnotherShell } from '../src/process/own-shell.ts';
import { HELPER_SHELL } from '../src/process/scripts.ts';
import { RecordingSink } from '../src/testing/executor-suite.ts';

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const isDash = realpathSync(HELPER_SHELL).endsWith('/dash') && realpathSync('/bin/sh').endsWith('/dash');
const notRun = process.env['PENSTOCK_NOT_RUN_FILE'];
if (!isDash && notRun !== undefined) appendFileSync(notRun, 'scripts in the shell of a helper: `sh` is no dash here\n');

const FORKED = [
  'npm ci && npm test',
  'go build ./... && ls . ; /usr/local/bin/tool',
  'echo "$HOME" | tee out; cat <<END\n$PATH\nEND',
  "trap 'rm -rf $tmp' EXIT; set -ex; cp a .; find . >all; tar c .|cat",
  'for each in a b; do echo "$each"; done; exit 3',
];
const NEW = [
  'kill $$',
  'kill "${$}"',
  'echo "$\\\n$"',
  'echo $PPID',
  'ev\\\nal "$text"',
  'e"va"l "$text"',
  '. ./functions.sh',
  'true;. ./functions.sh',
  'x=$(. ./functions.sh)',
  '. </dev/null ./functions.sh',
  'trap "$cleanup" EXIT',
  'trap -- $cleanup EXIT',
  'set -em',
  'set -e -u -m',
  '${debug:+set -m}',
  '${options:-set -e -m}',
  'set -o monitor',
  'set -u; . "$file"',
  'f() { local x; }; f',
  "alias a='echo $'\na",
];

/** Their output and their end are what a shell of its own has for them. */
const SAME = [
  'echo $-; echo "$0 $#"; echo ${1-none}; echo [$shell$own$drop$ahead$rightless$unshares$stage$order$asked$status$rounds]; type start; type ask',
  'echo one; false; echo two',
  'false || echo three; ! true; if false; then :; fi; echo four',
  'return 3; echo never',
  'break; echo one; continue; echo two',
  'f() { return 4; }; f; echo never',
  'trap "echo bye" EXIT; exit 5',
  'trap "echo bye" EXIT; false',
  'trap; umask; ulimit -n; jobs; alias',
  'exec 3>&1; echo three >&3; exec echo four',
  'set -u; echo $unset; echo never',
  'echo ${unset?is not set}; echo never',
  'nosuchcommand; echo never',
  'cd /nosuch; echo never',
  'cd /; pwd; echo "$PWD ${OLDPWD-none}"; env | grep PWD',
  'shift; echo never',
  'readonly y=1; y=2; echo never',
  'echo "open',
  'if true; then',
  'echo $((1 / 0)); echo never',
  'read line || echo end; echo "[$line]"',
  'sleep 60 & kill $!; wait $! 2>/dev/null || echo $?',
  'echo $LINENO\ncat <<END\n$LINENO\nEND\necho $LINENO',
  'set -- a b; echo "$# $1"; getopts a: o -a x; echo "$o $OPTARG $OPTIND"',
  'x=$(false); echo never',
  '(exit 6); echo never',
  'set | grep -c "^PATH="; export | grep -c "PATH="',
  'unset PATH; ls',
  'set -x; echo one',
  'set -x; false',
];

describe.runIf(isDash).each([
  ['when its stage starts', false],
  ['in a process that was prepared', true],
])('a script that its helper’s shell evaluates %s', (_when, isPrepared) => {
  let folder: string;
  let executor: ProcessExecutor;
  beforeAll(async () => {
    folder = realpathSync(mkdtempSync(join(tmpdir(), 'penstock-own-shell-')));
    executor = new ProcessExecutor({ forksAhead: isPrepared, warn: () => {} });
    await executor.prewarm(1);
  });
  afterAll(async () => {
    await executor.close();
    rmSync(folder, { recursive: true, force: true });
  });

  async function run(
    script: string | readonly string[],
    env: Record<string, string> = {},
  ): Promise<readonly unknown[]> {
    const sink = new RecordingSink();
    const commands = [script].flat().map((text) => ({ script: text, bindings: {} }));
    const spec = { helperKey: 'key', commands, env: { PATH, ...env }, cwd: folder, folders: [], timeoutMs: 60_000 };
    const preparation = isPrepared ? executor.prepare(spec) : undefined;
    expect(preparation?.begin()).toBe(isPrepared ? executor.isIsolated : undefined);
    const exit = await (preparation?.start(sink) ?? executor.start(spec, sink)).ended;
    return [exit.kind === 'exit' ? exit.code : exit, sink.text(), sink.text('stderr')];
  }

  it.each(FORKED)('is one that sees no difference: %j', (script) => {
    expect(needsAnotherShell([{ script, bindings: {} }], { PATH })).not.toBeNull();
  });

  it.each(NEW)('is none that could see a difference: %j', (script) => {
    expect(
      needsAnotherShell(
        [
          { script: 'true', bindings: {} },
          { script, bindings: {} },
        ],
        { PATH },
      ),
    ).toBeNull();
  });

  // Looked at again for each beginning, each of them took eight seconds and more, in which the runner did nothing else.
  it.each([
    ['set ', '-set ', null],
    ['. ', '<(. ', 'differs'],
  ])(
    'is looked at once, also where it has the largest size and all of it could begin what differs: %j',
    (first, rest, differs) => {
      const script = `${first}${rest.repeat(Math.floor(95_000 / rest.length))}\n`;
      for (let time = 0; time < 10; time += 1) {
        const condition = needsAnotherShell([{ script, bindings: {} }], { PATH });
        expect(condition === null).toBe(differs !== null);
      }
    },
  );

  it('is looked for in no folder that a stage names, and among so many only', () => {
    const commands = [{ script: 'true', bindings: {} }];
    const shells = join(folder, 'shells');
    mkdirSync(shells);
    symlinkSync(HELPER_SHELL, join(shells, 'sh'));
    expect(needsAnotherShell(commands, { PATH: shells })).toBeNull();
    expect(needsAnotherShell(commands, { PATH: `${shells}:${PATH}` })).toContain(`-e '${shells}/sh'`);
    const many = Array.from({ length: 40_000 }, () => '/a').join(':');
    expect(needsAnotherShell(commands, { PATH: `${many}:${PATH}` })).toBeNull();
  });

  it.each(SAME)('does what a shell of its own does: %j', async (script) => {
    const { status, stdout, stderr } = spawnSync('sh', ['-e', '-c', script], {
      cwd: folder,
      env: { PATH, HOME: folder },
      input: '',
      encoding: 'utf8',
    });
    const [code, out, err] = await run(script);
    expect([code, out, String(err).replaceAll(': eval: ', ': ')]).toEqual([status, stdout, stderr]);
  });

  it('is told the number of its own process, and its parent’s, whatever evaluates it', async () => {
    expect(await run('[ $$ = "$(sh -c "echo \\$PPID")" ] && echo own; [ $PPID = 1 ] && echo helper')).toEqual([
      0,
      'own\nhelper\n',
      '',
    ]);
  });

  it('has no descriptor but the stage’s three', async () => {
    const [, out] = await run(`perl -e 'opendir(D, "/proc/" . getppid() . "/fd"); print join(" ", sort readdir D)'; :`);
    expect(out).toBe('. .. 0 1 2');
  });

  it('is evaluated by another `sh` where the stage’s PATH has one, as soon as it has', async () => {
    const env = { PATH: `${folder}/bin:${PATH}` };
    expect(await run('echo usual', env)).toEqual([0, 'usual\n', '']);
    expect(
      await run('mkdir bin; printf "#!/bin/sh\\necho \\"other \\$*\\"\\n" >bin/sh; chmod 755 bin/sh', env),
    ).toEqual([0, '', '']);
    expect(await run('echo usual', env)).toEqual([0, 'other -e -c echo usual\n', '']);
    expect(await run('echo usual', { PATH: `bin:${PATH}` })).toEqual([0, 'other -e -c echo usual\n', '']);
    rmSync(join(folder, 'bin'), { recursive: true });
    expect(await run('echo usual', env)).toEqual([0, 'usual\n', '']);
  });

  it('is evaluated by another `sh` where the one that was found is not the helper’s any more', async () => {
    const env = { PATH: folder };
    const file = join(folder, 'sh');
    symlinkSync(HELPER_SHELL, file);
    expect(await run('echo usual', env)).toEqual([0, 'usual\n', '']);
    rmSync(file);
    writeFileSync(file, '#!/bin/sh\necho other\n');
    chmodSync(file, 0o755);
    expect(await run('echo usual', env)).toEqual([0, 'other\n', '']);
    rmSync(file);
  });

  it('splits words as every shell does that begins, whatever its environment says', async () => {
    expect(await run('words="a b"; set -- $words; echo $#', { IFS: 'x' })).toEqual([0, '2\n', '']);
  });

  it('has variables of the names that its helper uses, where the stage gives them', async () => {
    expect(await run('echo "$shell $stage $status"', { shell: 'a', stage: 'b', status: 'c' })).toEqual([
      0,
      'a b c\n',
      '',
    ]);
  });

  it('is each command of a list by itself', async () => {
    expect(await run(['x=kept', 'echo "$x"; cd /', 'pwd', 'exit 4', 'echo never'])).toEqual([4, 'kept\n/\n', '']);
  });
});
