/**
 * What a stage may that is its owner's own user; and what it is where root's helper has made it another one: by `unshare` where this machine's can, and by `setpriv` where not, which is
 * made here by another program in its place, in a mount namespace. That needs root.
 */
import { execFile } from 'node:child_process';
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { OwnerResult, OwnerTask } from './sandbox-owner.ts';
import { makeWorld, titles, type World } from './sandbox-world.ts';

const OWNER = fileURLToPath(new URL('./sandbox-owner.ts', import.meta.url));
const UID = 325_001;
const NONE = '0'.repeat(16);
/** setuid, setgid and kill, by their numbers. */
const HELPER_RIGHTS = '00000000000000e0';
const isRoot = process.platform === 'linux' && process.getuid?.() === 0;
const notRun = process.env['PENSTOCK_NOT_RUN_FILE'];
if (!isRoot && notRun !== undefined)
  appendFileSync(notRun, 'what a user of a stage may: the tests do not run as root\n');

/** Root has it on most machines (CAP_SYS_RESOURCE). */
const mayRaise =
  isRoot && ((BigInt(`0x${fieldsOf(readFileSync('/proc/self/status', 'utf8'))['CapEff'] ?? 0}`) >> 24n) & 1n) === 1n;
if (isRoot && !mayRaise && notRun !== undefined)
  appendFileSync(notRun, 'more open files of a stage than of its owner: root may raise no limit here\n');

/** Knows everything but the options by which a process becomes another user, as older ones do. */
const OLDER_UNSHARE = String.raw`set -e
unshare=$(command -v unshare); cp "$unshare" "$1/unshare"
printf '#!/bin/sh\nfor word; do case $word in --setuid) exit 1;; --) break;; esac; done\nexec "%s" "$@"\n' "$1/unshare" >"$1/older"
chmod 755 "$1" "$1/older"; mount --bind "$1/older" "$unshare"`;

describe.runIf(isRoot).each([
  { by: 'unshare', inherits: HELPER_RIGHTS, prepare: ':' },
  { by: 'setpriv', inherits: NONE, prepare: OLDER_UNSHARE },
])('a stage that becomes its user by $by', ({ inherits, prepare }) => {
  let dataDir: string;
  let programs: string;
  beforeEach(() => {
    dataDir = mkdtempSync('/var/tmp/penstock-user-');
    programs = mkdtempSync('/var/tmp/penstock-programs-');
  });
  afterEach(() => {
    for (const folder of [dataDir, programs]) rmSync(folder, { recursive: true, force: true });
  });

  /** Its owner is in groups of root's, and `limits` bound it. */
  async function outputOf(
    script: string,
    more: Partial<OwnerTask> = {},
    limits: readonly string[] = [],
  ): Promise<string> {
    const users = { first: UID, last: UID };
    const stages = [{ key: 'key', run: 'run', script, uid: UID }];
    const task: OwnerTask = { kind: 'process', dataDir, users, stages, ...more };
    const owner = ['setpriv', '--groups=4,27', '--', ...limits, process.execPath, OWNER, JSON.stringify(task)];
    const { stdout } = await promisify(execFile)(
      'unshare',
      ['--mount', 'sh', '-c', `${prepare}\nshift\nexec "$@"`, 'sh', programs, ...owner],
      { env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' }, cwd: '/' },
    );
    const [result] = JSON.parse(stdout) as OwnerResult[];
    expect(result?.exit, JSON.stringify(result)).toEqual({ kind: 'exit', code: 0 });
    return result?.stdout ?? '';
  }

  it('is that user in every respect, in no group but its own, and has no right', async () => {
    const status = fieldsOf(await outputOf('cat /proc/self/status'));
    expect(status).toMatchObject({
      Uid: Array<string>(4).fill(String(UID)).join(' '),
      Gid: Array<string>(4).fill(String(UID)).join(' '),
      Groups: '',
      CapPrm: NONE,
      CapEff: NONE,
      CapBnd: NONE,
      CapAmb: NONE,
      CapInh: inherits,
      NoNewPrivs: '1',
    });
  });

  it('has a helper that has no right either but to make it that user and to end it', async () => {
    expect(fieldsOf(await outputOf('cat /proc/1/status'))).toMatchObject({
      Uid: '0 0 0 0',
      Groups: '',
      CapPrm: HELPER_RIGHTS,
      CapEff: HELPER_RIGHTS,
      CapBnd: NONE,
      CapAmb: NONE,
      NoNewPrivs: '1',
    });
  });

  it('gets no right by programs of root’s that give them, nor from what it could pass on', async () => {
    const given = {
      permitted: 'pack("V5", 0x02000000, 0xe0, 0, 0, 0)',
      inherited: 'pack("V5", 0x02000000, 0, 0xe0, 0, 0)',
    };
    const set = process.arch === 'x64' ? 188 : 5;
    for (const [name, value] of Object.entries(given))
      await promisify(execFile)('sh', [
        '-c',
        `cp "$(command -v grep)" "$0" && chmod 755 "$0" "\${0%/*}" && perl -e 'my ($f, $n, $v) = (shift, "security.capability", ${value}); syscall(${set}, $f, $n, $v, length $v, 0) and die $!' "$0"`,
        `${programs}/${name}`,
      ]);
    const setPrctl = process.arch === 'x64' ? 157 : 167;
    const text = await outputOf(
      [
        ...Object.keys(given).map((name) => `${programs}/${name} -E '^Cap(Prm|Eff)' /proc/self/status`),
        `perl -e 'for my $right (0..40) { print "raised $right\\n" if syscall(${setPrctl}, 47, 2, $right, 0, 0) == 0 }; $< = 0; $> = 0; print "became $<\\n"; system "grep", "^CapEff", "/proc/self/status"'`,
      ].join('\n'),
    );
    expect(
      text
        .trim()
        .split('\n')
        .map((line) => line.replaceAll(/\s+/g, ' ')),
    ).toEqual([
      ...[`CapPrm: ${NONE}`, `CapEff: ${NONE}`],
      ...[`CapPrm: ${NONE}`, `CapEff: ${NONE}`],
      ...[`became ${UID}`, `CapEff: ${NONE}`],
    ]);
  });

  it.runIf(mayRaise)('may have more open than its owner, where root has said so', async () => {
    const limits = ['prlimit', '--nofile=1024:1024', '--'];
    expect(await outputOf('ulimit -n; ulimit -Hn', { openFiles: 2_000 }, limits)).toBe('2000\n2000\n');
  });
});

describe.runIf(process.platform === 'linux' && titles().includes('an ordinary user'))(
  "a stage that is its owner's own user",
  () => {
    let world: World;
    beforeEach(() => {
      world = makeWorld('an ordinary user');
    });
    afterEach(() => world.remove());

    it('has no right, and a helper that has one alone, by which it is not to be reached', async () => {
      const script = 'id -u; cat /proc/self/status; echo; cat /proc/1/status; cat /proc/1/environ || echo refused';
      const [result] = await world.run({ kind: 'process', stages: [{ key: 'key', run: 'run', script }] });
      expect(result?.exit, JSON.stringify(result)).toEqual({ kind: 'exit', code: 0 });
      const [own = '', helper = ''] = (result?.stdout ?? '').split('\n\n');
      const none = { CapInh: NONE, CapPrm: NONE, CapEff: NONE, CapBnd: NONE, CapAmb: NONE };
      const uid = own.split('\n')[0];
      expect(fieldsOf(own)).toMatchObject({ ...none, NoNewPrivs: '1', Uid: `${uid} ${uid} ${uid} ${uid}` });
      const kill = '0000000000000020';
      const rights = { CapInh: kill, CapPrm: kill, CapEff: kill, CapBnd: NONE, CapAmb: kill };
      expect(fieldsOf(helper)).toMatchObject({ ...rights, NoNewPrivs: '1' });
      expect(helper).toMatch(/refused\n$/);
    });
  },
);

/** Of a process, by their names. */
function fieldsOf(status: string): Record<string, string> {
  return Object.fromEntries(
    status.split('\n').map((line) => {
      const [name = '', value = ''] = line.split(':');
      return [name, value.trim().replaceAll(/\s+/g, ' ')];
    }),
  );
}
