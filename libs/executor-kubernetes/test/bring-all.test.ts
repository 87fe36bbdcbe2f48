/** What a stage is given in its Pod; its container is a shell of this machine. */
import { spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { leftTreeOf } from '@penstock/executor';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Cluster } from '../src/cluster/cluster.ts';
import { bringAllIn, bringAllOut, faultsOfAll } from '../src/pod/bring-all.ts';
import { ClusterError } from '../src/errors.ts';
import { stageOf } from './lab/lab.ts';

let home: string;
let remarks: string[];
/** Calls that the API server answers before it is away. */
let callsLeft: number;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'penstock-bring-all-'));
  remarks = [];
  callsLeft = Infinity;
  for (const name of ['from', 'over']) mkdirSync(join(home, name));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const cluster: Pick<Cluster, 'exec'> = {
  exec: (_pod, _container, [, ...words], handlers) => {
    callsLeft -= 1;
    if (callsLeft < 0) return Promise.reject(new ClusterError(0, 'it is away'));
    const child = spawn('sh', words, { stdio: ['pipe', 'pipe', 'pipe'] });
    child.stdin.on('error', () => {});
    child.stdout.on('data', (bytes: Buffer) => handlers.onStdout(bytes));
    child.stderr.on('data', (bytes: Buffer) => handlers.onStderr(bytes));
    child.once('close', (code) => handlers.onClose(code === 0 ? { status: 'Success' } : { status: 'Failure' }));
    return Promise.resolve({
      send: (bytes) =>
        new Promise<void>((done, fail) => {
          child.stdin.write(bytes, (error) => (error ? fail(new ClusterError(0, 'it is closed')) : done()));
        }),
      endInput: () => Promise.resolve(void child.stdin.end()),
      pause: () => {},
      resume: () => {},
      close: () => void child.kill('SIGKILL'),
    });
  },
};
const inPod = {
  cluster: cluster as Cluster,
  pod: 'p',
  signal: new AbortController().signal,
  remark: (text: string): void => void remarks.push(text),
};

it('what lies over a folder is there beside what it begins with, with its permissions, also where there was no folder', async () => {
  const [from, over, to] = [join(home, 'from'), join(home, 'over'), join(home, 'pod/work')];
  writeFileSync(join(from, 'checkout'), 'own');
  writeFileSync(join(from, 'both'), 'own');
  mkdirSync(join(over, 'deep'));
  writeFileSync(join(over, 'deep/tool'), 'restored');
  chmodSync(join(over, 'deep/tool'), 0o575);
  writeFileSync(join(over, 'both'), 'restored');
  await bringAllIn(
    inPod,
    [{ from, to }],
    [
      { from: over, to },
      { from: over, to: join(home, 'pod/home') },
    ],
  );
  expect(['checkout', 'both', 'deep/tool'].map((name) => readFileSync(join(to, name), 'utf8'))).toEqual([
    'own',
    'restored',
    'restored',
  ]);
  expect(statSync(join(to, 'deep/tool')).mode & 0o777).toBe(0o575);
  expect(existsSync(join(home, 'pod/home/deep/tool'))).toBe(true);
  expect(remarks).toEqual([]);
});

it('more names than a command can be given are brought, whatever they are', async () => {
  const [from, to] = [join(home, 'many'), join(home, 'to')];
  mkdirSync(from);
  const odd = ['-rf', 'a\nb', '$(x)', ' '];
  for (const name of odd) writeFileSync(join(from, name), name);
  for (let at = 0; at < 10_000; at += 1) writeFileSync(join(from, `${'n'.repeat(240)}-${at}`), '');
  await bringAllIn(inPod, [{ from, to }], []);
  expect(readdirSync(to)).toHaveLength(10_004);
  expect(odd.map((name) => readFileSync(join(to, name), 'utf8'))).toEqual(odd);
});

it('a runner that has no file left to pack a folder tries again, and goes on', () => {
  writeFileSync(join(home, 'from/x'), '1');
  const program = `
    import { openSync, closeSync } from 'node:fs';
    import { bringFolder } from ${JSON.stringify(join(import.meta.dirname, '../src/pod/folders.ts'))};
    let open = 0;
    const cluster = { exec: async () => { open += 1; return { close: () => { open -= 1; } }; } };
    const held = [];
    try { for (;;) held.push(openSync('/dev/null', 'r')); } catch {}
    // For the list of its names.
    closeSync(held.pop());
    const brought = { from: ${JSON.stringify(join(home, 'from'))}, to: '/x' };
    const fault = await bringFolder(cluster, 'p', brought, new AbortController().signal).catch((error) => error);
    await new Promise(setImmediate);
    for (const fd of held) closeSync(fd);
    console.log(fault.tag, fault.code, open);
  `;
  const { stdout, stderr } = spawnSync(
    'sh',
    ['-c', `ulimit -n 64; exec "$0" --input-type=module -e "$1"`, process.execPath, program],
    { encoding: 'utf8' },
  );
  expect([stdout, stderr]).toEqual(['ClusterError 0 0\n', '']);
});

it('what cannot be laid over it is told, and the stage begins; without its folders it does not', async () => {
  const [from, over, to] = [join(home, 'from'), join(home, 'over'), join(home, 'to')];
  for (const folder of [from, over]) writeFileSync(join(folder, 'x'), '1');
  writeFileSync(join(home, 'file'), '');
  await bringAllIn(inPod, [{ from, to }], [{ from: over, to: join(home, 'file/inside') }]);
  expect(remarks).toEqual([expect.stringContaining('what was restored is not there as it should be')]);
  await expect(bringAllIn(inPod, [{ from: over, to: join(home, 'file/inside') }], [])).rejects.toMatchObject({
    code: 422,
  });
});

it('what no command there takes is told as such, also where it is more than fits on the way', async () => {
  const [from, over, to] = [join(home, 'from'), join(home, 'over'), join(home, 'to')];
  writeFileSync(join(from, 'x'), '1');
  writeFileSync(join(over, 'large'), Buffer.alloc(5_000_000));
  writeFileSync(join(home, 'file'), '');
  await bringAllIn(inPod, [{ from, to }], [{ from: over, to: join(home, 'file/inside') }]);
  expect(remarks).toEqual([expect.stringContaining('what was restored is not there as it should be')]);
});

it('where the server is away it is for the caller to try again', async () => {
  callsLeft = 1;
  const [from, over, to] = [join(home, 'from'), join(home, 'over'), join(home, 'to')];
  for (const folder of [from, over]) writeFileSync(join(folder, 'x'), '1');
  await expect(bringAllIn(inPod, [{ from, to }], [{ from: over, to }])).rejects.toMatchObject({ code: 0 });
  expect(remarks).toEqual([]);
});

it('what is brought out comes one by one: one that fails leaves its reason, and the next one comes', async () => {
  const folder = join(home, 'from');
  writeFileSync(join(folder, 'a'), '1');
  const everything = (list: Uint8Array) => Promise.resolve({ ...leftTreeOf(list), folders: [] });
  const leavings = ['no/such', 'good', 'unwanted'].map((name) => ({
    folder,
    into: join(home, name),
    isWanted: () => name !== 'unwanted',
    pick: name === 'no/such' ? () => Promise.reject(new Error('nobody knows')) : everything,
  }));
  const faults = faultsOfAll(leavings, 'it never ran');
  const spec = stageOf('true', { leavings });
  await bringAllOut(inPod, { spec, exit: { kind: 'exit', code: 0 }, bytesMax: 1_000 }, faults);
  expect(readFileSync(join(home, 'good/a'), 'utf8')).toBe('1');
  expect([...faults]).toEqual([
    [join(home, 'no/such'), 'the files could not be brought out of its Pod: nobody knows'],
    [join(home, 'unwanted'), 'it never ran'],
  ]);
});
