/** Trees that stages have written are removed without harm to anything else, whatever is done to them meanwhile. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { removeTree } from '../src/workspace/trees.ts';

const isRoot = process.getuid?.() === 0;
const UID = isRoot ? 350_001 : (process.getuid?.() ?? 0);
const FILES = 50;
/** That have succeeded: on an idle core some 100,000 come within a second. */
const EXCHANGES_MIN = 100_000;
const ROUNDS_MIN = 10;
const ROUNDS_MAX = 400;
/** `renameat2` with RENAME_EXCHANGE, as fast as it goes, of folders and of links to what is not the stage's. */
const EXCHANGES = `
  my ($number, $root) = @ARGV;
  my $count = 0;
  $SIG{TERM} = sub { print $count; exit };
  $| = 1; print "up\\n";
  my @pairs = map { (["$root/d$_", "$root/l$_"], ["$root/d$_/sub", "$root/d$_/link"]) } 1..4;
  while (1) { for my $pair (@pairs) { syscall($number, -100, $pair->[0], -100, $pair->[1], 2) == 0 and $count += 1 } }
`;
const RENAMEAT2 = process.arch === 'x64' ? 316 : 276;

let folder: string;
let tree: string;
let targets: string[];
beforeEach(() => {
  folder = mkdtempSync('/var/tmp/penstock-removal-');
  chmodSync(folder, 0o755);
  tree = join(folder, 'run');
  // The service's, and another run's of the same user.
  targets = ['service', 'other-run'].map((name) => join(folder, name));
  for (const target of targets) {
    mkdirSync(target);
    for (let file = 0; file < FILES; file += 1) writeFileSync(join(target, `file-${file}`), 'kept');
  }
  if (isRoot) execFileSync('chown', ['-R', `${UID}:${UID}`, join(folder, 'other-run')]);
});
afterEach(() => {
  execFileSync('sh', ['-c', 'chattr -R -i "$1" 2>/dev/null; chmod -R u+rwX "$1"', 'sh', folder]);
  rmSync(folder, { recursive: true, force: true });
});

function grow(): void {
  mkdirSync(tree);
  for (let at = 1; at <= 4; at += 1) {
    const [target = ''] = [targets[at % 2]];
    execFileSync('sh', [
      '-c',
      'mkdir -p "$1/d$2/sub/deeper" && (cd "$1/d$2/sub/deeper" && seq 1 200 | xargs touch) && touch "$1/d$2/sub/file" && ln -s "$3" "$1/l$2" && ln -s "$3" "$1/d$2/link"',
      'sh',
      tree,
      String(at),
      target,
    ]);
  }
  if (isRoot) execFileSync('chown', ['-Rh', `${UID}:${UID}`, tree]);
}

const remaining = (): number[] => targets.map((target) => readdirSync(target).length);

describe('the removal of a tree', () => {
  it('removes nothing else while its folders and links change places', async () => {
    const as = isRoot ? ['setpriv', `--reuid=${UID}`, `--regid=${UID}`, '--clear-groups', '--'] : [];
    let exchanges = 0;
    for (let round = 0; round < ROUNDS_MAX && (round < ROUNDS_MIN || exchanges < EXCHANGES_MIN); round += 1) {
      rmSync(tree, { recursive: true, force: true });
      grow();
      const [file = '', ...args] = [...as, 'perl', '-e', EXCHANGES, String(RENAMEAT2), tree];
      const swapper = spawn(file, args, { stdio: ['ignore', 'pipe', 'inherit'] });
      let said = '';
      swapper.stdout.on('data', (data: Buffer) => {
        said += data.toString();
      });
      await once(swapper.stdout, 'data');
      // It may fail, for the tree grows new names under its hands: nothing else may go.
      await removeTree(tree).catch(() => {});
      swapper.kill('SIGTERM');
      await once(swapper, 'close');
      exchanges += Number(said.split('\n').at(-1));
      expect(remaining()).toEqual([FILES, FILES]);
    }
    expect(exchanges).toBeGreaterThan(EXCHANGES_MIN / 10);
    await removeTree(tree);
    expect(existsSync(tree)).toBe(false);
  }, 300_000);

  it('takes folders that nobody may read, other names and links to everything', async () => {
    grow();
    execFileSync('sh', [
      '-c',
      'cd "$1" && mv d1/sub d2/moved && chmod 000 d2/moved/deeper d3 && chmod 500 d4 && ln -s / root',
      'sh',
      tree,
    ]);
    if (isRoot) chownSync(tree, UID, UID);
    await removeTree(tree);
    expect(existsSync(tree)).toBe(false);
    expect(remaining()).toEqual([FILES, FILES]);
  });

  if (!isRoot) return;
  it('has no more rights in it than its user: of a folder that is not theirs nothing goes', async () => {
    mkdirSync(join(tree, 'theirs', 'inner'), { recursive: true });
    writeFileSync(join(tree, 'theirs', 'inner', 'kept'), '');
    for (const own of [tree, join(tree, 'theirs')]) chownSync(own, UID, UID);
    await expect(removeTree(tree)).rejects.toThrow('Permission denied');
    expect(existsSync(join(tree, 'theirs', 'inner', 'kept'))).toBe(true);
  });

  it('takes what somebody has made immutable', async () => {
    grow();
    execFileSync('chattr', ['+i', join(tree, 'd1', 'sub', 'file'), join(tree, 'd2')]);
    await removeTree(tree);
    expect(existsSync(tree)).toBe(false);
    expect(remaining()).toEqual([FILES, FILES]);
  });
});
