/** What a stage has left in its Pod, on its way out of it; its container is a shell of this machine. */
import { execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { leftTreeOf, type LeftTree, type StageLeavings } from '@penstock/executor';
import { pack } from 'tar-stream';
import type { Cluster } from '../src/cluster/cluster.ts';
import { bringOut } from '../src/pod/leavings.ts';

let home: string;
let folder: string;
let into: string;
/** What the container answers to the packing, instead of its own archive. */
let forged: Buffer | null;
/** How often its output was told to wait. */
let pauses: number;

beforeEach(() => {
  pauses = 0;
  home = mkdtempSync(join(tmpdir(), 'penstock-leavings-'));
  folder = join(home, 'stage');
  into = join(home, 'brought');
  forged = null;
  mkdirSync(folder);
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const cluster: Pick<Cluster, 'exec'> = {
  exec: (_pod, _container, [, ...words], handlers) => {
    const child = spawn('sh', words, { stdio: ['pipe', 'pipe', 'pipe'] });
    child.stdin.on('error', () => {});
    child.stderr.on('data', (bytes: Buffer) => handlers.onStderr(bytes));
    const isForged = forged !== null && words[1]?.includes('xargs -0') === true;
    if (isForged && forged !== null)
      for (let at = 0; at < forged.length; at += 512) handlers.onStdout(forged.subarray(at, at + 512));
    else child.stdout.on('data', (bytes: Buffer) => handlers.onStdout(bytes));
    child.once('close', (code) => handlers.onClose(code === 0 ? { status: 'Success' } : { status: 'Failure' }));
    if (isForged) child.stdout.resume();
    return Promise.resolve({
      send: (bytes) => new Promise<void>((done) => child.stdin.write(bytes, () => done())),
      endInput: () => Promise.resolve(void child.stdin.end()),
      pause: () => {
        pauses += 1;
        child.stdout.pause();
      },
      resume: () => child.stdout.resume(),
      close: () => void child.kill('SIGKILL'),
    });
  },
};

function bring(
  pick: StageLeavings['pick'],
  bytesMax = 10_000_000,
  below?: readonly string[],
): Promise<readonly string[]> {
  const leavings = { folder, below, into, isWanted: () => true, pick };
  const { signal } = new AbortController();
  return bringOut({ cluster: cluster as Cluster, pod: 'p', leavings, bytesMax, signal });
}

const everything: StageLeavings['pick'] = (list) => Promise.resolve({ ...leftTreeOf(list), folders: [] });
const only =
  (...files: readonly string[]): StageLeavings['pick'] =>
  () =>
    Promise.resolve({ files, links: new Map(), folders: [] });

async function archiveOf(
  ...entries: readonly (readonly [header: Parameters<ReturnType<typeof pack>['entry']>[0], text: string])[]
) {
  const archive = pack();
  for (const [header, text] of entries) archive.entry(header, text);
  archive.finalize();
  return Buffer.concat(await Array.fromAsync(archive as AsyncIterable<Buffer>));
}

it('brings files with their bytes and whether they are programs, and links as they are', async () => {
  mkdirSync(join(folder, 'deep/er'), { recursive: true });
  const large = Buffer.alloc(3_000_000, 'x');
  writeFileSync(join(folder, 'deep/er/large'), large);
  writeFileSync(join(folder, "it's; $(here)"), 'odd', { mode: 0o755 });
  linkSync(join(folder, 'deep/er/large'), join(folder, 'again'));
  symlinkSync('/etc/passwd', join(folder, 'out'));
  symlinkSync('deep', join(folder, 'aside'));
  expect(await bring(everything)).toEqual([]);
  expect(readFileSync(join(into, 'deep/er/large')).equals(large)).toBe(true);
  expect(readFileSync(join(into, 'again')).equals(large)).toBe(true);
  expect(statSync(join(into, "it's; $(here)")).mode & 0o100).toBe(0o100);
  expect(readlinkSync(join(into, 'out'))).toBe('/etc/passwd');
  expect(readlinkSync(join(into, 'aside'))).toBe('deep');
});

it('brings permissions and times, and each file so that it can be read here', async () => {
  const time = new Date('2026-03-04T05:06:07Z');
  for (const [name, mode] of [
    ['module', 0o444],
    ['tool', 0o755],
  ] as const) {
    writeFileSync(join(folder, name), name);
    chmodSync(join(folder, name), mode);
    utimesSync(join(folder, name), time, time);
  }
  forged = await archiveOf([{ name: './shut', mode: 0o4200, mtime: time }, 'x']);
  writeFileSync(join(folder, 'shut'), 'x');
  expect(await bring(only('shut'))).toEqual([]);
  expect(statSync(join(into, 'shut')).mode & 0o7777).toBe(0o600);
  rmSync(into, { recursive: true });
  forged = null;
  expect(await bring(only('module', 'tool'))).toEqual([]);
  expect(['module', 'tool'].map((name) => statSync(join(into, name)).mode & 0o7777)).toEqual([0o444, 0o755]);
  expect(statSync(join(into, 'module')).mtime).toEqual(time);
});

it('looks below those paths alone that are asked for, whatever their names', async () => {
  const seen: string[] = [];
  for (const name of ['-delete', 'b', 'c']) {
    mkdirSync(join(folder, name));
    writeFileSync(join(folder, name, 'file'), name);
  }
  symlinkSync('b', join(folder, 'link'));
  const look: StageLeavings['pick'] = (list, signal) => {
    const { files, links } = leftTreeOf(list);
    seen.push(...files, ...links.keys());
    return everything(list, signal);
  };
  expect(await bring(look, 1_000, ['-delete', 'c/file', 'link', 'gone'])).toEqual([]);
  expect(seen.toSorted()).toEqual(['-delete/file', 'c/file', 'link']);
  expect(readFileSync(join(into, '-delete/file'), 'utf8')).toBe('-delete');
});

it('lists what is neither a file nor a link, which it brings nothing of, and looks no less below a folder for it', async () => {
  execFileSync('mkfifo', [join(folder, 'pipe')]);
  mkdirSync(join(folder, 'deep'));
  execFileSync('mkfifo', [join(folder, 'deep/li\nne')]);
  symlinkSync('pipe', join(folder, 'link'));
  writeFileSync(join(folder, 'file'), '1');
  const trees: LeftTree[] = [];
  const look: StageLeavings['pick'] = (list, signal) => {
    trees.push(leftTreeOf(list));
    return everything(list, signal);
  };
  expect(await bring(look)).toEqual([]);
  expect(trees.map((tree) => ({ ...tree, others: tree.others.toSorted() }))).toEqual([
    { files: ['file'], links: new Map([['link', 'pipe']]), others: ['deep/li\nne', 'pipe'], shut: [] },
  ]);
  expect(readdirSync(into).toSorted()).toEqual(['file', 'link']);
});

it('tells what kept it from choosing', async () => {
  await expect(bring(() => Promise.reject(new Error('the patterns take too long to match')))).rejects.toThrow(
    'the patterns take too long to match',
  );
});

it('brings more files than one command can be given', async () => {
  const names = Array.from({ length: 3_000 }, (_, at) => `${'n'.repeat(200)}-${at}`);
  for (const name of names) writeFileSync(join(folder, name), name);
  expect(await bring(everything)).toEqual([]);
  expect(readdirSync(into)).toHaveLength(3_000);
  expect(readFileSync(join(into, names[2_999] ?? ''), 'utf8')).toBe(names[2_999]);
});

it('tells its output to wait once, however much of it was on its way', async () => {
  writeFileSync(join(folder, 'large'), '');
  forged = await archiveOf([{ name: './large' }, 'x'.repeat(500_000)]);
  expect(await bring(only('large'))).toEqual([]);
  expect(readFileSync(join(into, 'large'), 'utf8')).toHaveLength(500_000);
  expect(pauses).toBe(1);
});

it('brings nothing but what is asked for, and says what of that it has not got', async () => {
  writeFileSync(join(folder, 'a'), '1');
  writeFileSync(join(folder, 'b'), '2');
  expect(await bring(only('a', 'gone'))).toEqual(['gone']);
  expect(readdirSync(into)).toEqual(['a']);
});

it('takes no path that it has not asked for, and none through a link, whatever the archive says', async () => {
  writeFileSync(join(folder, 'x'), 'right');
  forged = await archiveOf(
    [{ name: './x', type: 'symlink', linkname: home }, ''],
    [{ name: '../intruder' }, 'bad'],
    [{ name: './x/intruder' }, 'bad'],
    [{ name: '/etc/penstock-intruder' }, 'bad'],
    [{ name: './y', type: 'link', linkname: '/etc/passwd' }, ''],
    [{ name: './x' }, 'once'],
    [{ name: './x' }, 'twice'],
  );
  expect(await bring(only('x', 'y'))).toEqual(['y']);
  expect(readdirSync(home).toSorted()).toEqual(['brought', 'stage']);
  expect(readdirSync(into)).toEqual(['x']);
  expect(readFileSync(join(into, 'x'), 'utf8')).toBe('once');
});

it('writes no more than there is room for', async () => {
  writeFileSync(join(folder, 'a'), Buffer.alloc(2_000));
  await expect(bring(everything, 1_000)).rejects.toThrow('more than the 1000 bytes');
});

it('counts a file as often as it has names: each of them is a file of its own here', async () => {
  writeFileSync(join(folder, 'a'), Buffer.alloc(400));
  linkSync(join(folder, 'a'), join(folder, 'b'));
  expect(await bring(everything, 800)).toEqual([]);
  rmSync(into, { recursive: true });
  linkSync(join(folder, 'a'), join(folder, 'c'));
  await expect(bring(everything, 800)).rejects.toThrow('more than the 800 bytes');
});

it('is refused by an archive that ends in its middle', async () => {
  writeFileSync(join(folder, 'a'), 'x');
  forged = (await archiveOf([{ name: './a' }, 'y'.repeat(5_000)])).subarray(0, 3_000);
  await expect(bring(everything)).rejects.toThrow(/Unexpected end|ended|aborted|premature|close/i);
});
