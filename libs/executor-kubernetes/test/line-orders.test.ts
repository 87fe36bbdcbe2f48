/** What a line is told by its runner, as its own shell takes it. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { FrameReader } from '../src/line/frames.ts';
import { lineScript } from '../src/pod/scripts.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-line-'));
  mkdirSync(join(folder, 'pipes'));
  writeFileSync(join(folder, 'settings'), 'uid\n\n');
  writeFileSync(join(folder, 'state'), 'waiting\n');
  for (const name of ['pipes/wake', 'note', 'token.out', 'token.err']) writeFileSync(join(folder, name), '');
});
afterEach(() => rmSync(folder, { recursive: true }));

/** `told` in pieces, as they come over a network; answers how often the shell has read. */
async function tell(told: Buffer, pieceBytes = 10_000): Promise<number> {
  const line = spawn('sh', ['-c', lineScript.replaceAll('/penstock', folder)], { stdio: ['pipe', 'ignore', 'pipe'] });
  let said = '';
  const asked = new Promise<number>((resolve) =>
    line.stderr.on('data', (bytes: Buffer) => {
      said += bytes.toString('latin1');
      // The second is the answer to what was told last.
      if (said.split('ask ').length === 3)
        resolve(Number(/^syscr: (\d+)$/m.exec(readFileSync(`/proc/${line.pid}/io`, 'utf8'))?.[1]));
    }),
  );
  for (let at = 0; at < told.length; at += pieceBytes)
    if (!line.stdin.write(told.subarray(at, at + pieceBytes))) await once(line.stdin, 'drain');
  line.stdin.write('ask\n');
  const reads = await asked;
  line.stdin.end();
  await once(line, 'close');
  return reads;
}

const putting = (name: string, text: string, mark = `-- mark -- ${Buffer.byteLength(text)}`): Buffer =>
  Buffer.from(`put ${name} ${mark}\n${text}${mark}\n`);

it('a job of nearly a megabyte is no work of its shell, which reads what it reads byte by byte', async () => {
  const job = `export A='${'ä'.repeat(400_000)}'\n\\ \t x\n${'line\n'.repeat(10)}`;
  expect(await tell(putting('job.new', job))).toBeLessThan(5_000);
  expect(readFileSync(join(folder, 'job.new'), 'utf8')).toBe(job);
});

it('orders before and behind a text are taken, whatever is in it, and a text that comes again replaces the one before', async () => {
  const first = 'a longer text\nput b -- x -- 3\nask\n';
  await tell(Buffer.concat([putting('a', first), putting('b', '\n'), putting('a', 'go\n')]), 7);
  expect(readFileSync(join(folder, 'a'), 'utf8')).toBe('go\n');
  expect(readFileSync(join(folder, 'b'), 'utf8')).toBe('\n');
});

it('one whose line breaks in the middle of it ends with its line, and is there under no name', async () => {
  const line = spawn('sh', ['-c', lineScript.replaceAll('/penstock', folder)], { stdio: ['pipe', 'ignore', 'ignore'] });
  line.stdin.end('put job.new -- mark -- 100\nhalf\n');
  await once(line, 'close');
  expect(existsSync(join(folder, 'job.new'))).toBe(false);
});

it('what was still on its way to a line that another has ended is no part of what that one is told', async () => {
  const way = join(folder, 'way');
  execFileSync('mkfifo', [way]);
  const fd = openSync(way, 'r+');
  const script = lineScript.replaceAll('/penstock', folder);
  const first = spawn('sh', ['-c', script], { stdio: [fd, 'ignore', 'ignore'] });
  writeSync(fd, 'put job.new -- mark -- 100\n');
  const reader = (): number | undefined =>
    readFileSync(`/proc/${first.pid}/task/${first.pid}/children`, 'utf8')
      .split(' ')
      .filter(Boolean)
      .map(Number)
      .find((pid) => nameOf(pid) === 'dd');
  await expect.poll(reader, { timeout: 10_000, interval: 20 }).toBeDefined();
  const pid = reader() ?? 0;
  await tell(putting('job.new', 'whole\n'));
  expect([first.signalCode, nameOf(pid)]).toEqual(['SIGKILL', 'dd']);
  writeSync(fd, 'late\n');
  await expect.poll(() => nameOf(pid), { timeout: 10_000, interval: 20 }).toBeUndefined();
  closeSync(fd);
  expect(readFileSync(join(folder, 'job.new'), 'utf8')).toBe('whole\n');
});

/** Of a process that runs. */
function nameOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return stat.includes(') Z ') ? undefined : /\((.*)\)/.exec(stat)?.[1];
  } catch {
    return undefined;
  }
}

it('what is to be masked is said again before what was printed after it was changed, also where it is as long as before', async () => {
  const mask = join(folder, 'mask');
  writeFileSync(join(folder, 'settings'), `uid\n${mask}\n`);
  writeFileSync(mask, 'first-one\n');
  rmSync(join(folder, 'note'));
  execFileSync('mkfifo', [join(folder, 'note')]);
  // A block is whole once there is the next one.
  for (const [block, text] of ['a', 'b', ''].entries()) writeFileSync(join(folder, `out.${block}`), text);
  const line = spawn('sh', ['-c', lineScript.replaceAll('/penstock', folder)], { stdio: ['pipe', 'pipe', 'ignore'] });
  const reader = new FrameReader();
  const said: string[] = [];
  line.stdout.on('data', (bytes: Buffer) => {
    for (const frame of reader.push(bytes)) said.push('bytes' in frame ? `${frame.kind} ${frame.bytes}` : frame.kind);
    line.emit('said');
  });
  const until = async (text: string): Promise<void> => {
    while (!said.includes(text)) await once(line, 'said');
  };
  line.stdin.write('attach 0 0\n');
  await until('blocks ab');
  for (const [block, value] of [
    [2, 'other-one'],
    [3, 'other-one'],
  ] as const) {
    writeFileSync(mask, `${value}\n`);
    appendFileSync(join(folder, `out.${block}`), `block ${block}`);
    writeFileSync(join(folder, `out.${block + 1}`), '');
    appendFileSync(join(folder, 'note'), '\n');
    await until(`blocks block ${block}`);
  }
  expect(said).toEqual(['masks first-one\n', 'blocks ab', 'masks other-one\n', 'blocks block 2', 'blocks block 3']);
  line.stdin.end();
  await once(line, 'close');
});
