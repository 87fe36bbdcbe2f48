/** What a line is told by its runner, as its own shell takes it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
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

it('one whose line breaks in the middle of it ends with its line', async () => {
  const line = spawn('sh', ['-c', lineScript.replaceAll('/penstock', folder)], { stdio: ['pipe', 'ignore', 'ignore'] });
  line.stdin.end('put job.new -- mark -- 100\nhalf\n');
  await once(line, 'close');
  expect(readFileSync(join(folder, 'job.new'), 'utf8')).toBe('half\n');
});
