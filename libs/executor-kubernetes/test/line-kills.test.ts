/** A line that is ended by the next one at the worst moment, as its own shell takes it: the moments are written into its script. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { FrameReader } from '../src/line/frames.ts';
import { lineScript } from '../src/pod/scripts.ts';

let folder: string;
/** Held open, as the guard holds them. */
let pipes: Map<string, number>;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-line-'));
  mkdirSync(join(folder, 'pipes'));
  writeFileSync(join(folder, 'settings'), 'uid\n\n');
  writeFileSync(join(folder, 'state'), 'running\n');
  pipes = new Map(
    ['pipes/wake', 'note', 'token.out', 'token.err', 'gate', 'later'].map((name) => {
      execFileSync('mkfifo', [join(folder, name)]);
      return [name, openSync(join(folder, name), constants.O_RDWR | constants.O_NONBLOCK)];
    }),
  );
});
afterEach(() => {
  for (const pipe of pipes.values()) closeSync(pipe);
  rmSync(folder, { recursive: true });
});

interface Line {
  readonly shell: ChildProcess;
  /** It has ended, and all that it has started. */
  readonly closed: Promise<unknown>;
  tell(orders: string): void;
  /** What it says in the end, up to this. */
  said(last: string): Promise<string[]>;
}

/** `at`: what of the script is another one. */
function startLine(at: RegExp = /^$/u, becomes = (found: string, _group: string): string => found): Line {
  const script = lineScript.replace(at, becomes).replaceAll('/penstock', folder);
  const shell = spawn('sh', ['-c', script], { stdio: ['pipe', 'pipe', 'pipe'] });
  const reader = new FrameReader();
  const said: string[] = [];
  shell.stdin.on('error', () => {});
  shell.stdout.on('data', (bytes: Buffer) => {
    for (const frame of reader.push(bytes)) said.push('bytes' in frame ? `${frame.kind} ${frame.bytes}` : frame.kind);
    shell.emit('said');
  });
  return {
    shell,
    closed: once(shell, 'close'),
    tell: (orders) => void shell.stdin.write(orders),
    said: async (last) => {
      while (!said.includes(last)) await once(shell, 'said');
      return said;
    },
  };
}

async function end({ shell, closed }: Line): Promise<void> {
  shell.stdin?.end();
  await closed;
}

/** The blocks of a stream; the last one goes on. */
function print(...blocks: readonly string[]): void {
  for (const [number, text] of [...blocks, ''].entries()) writeFileSync(join(folder, `out.${number}`), text);
}

function wake(pipe: string): void {
  execFileSync('sh', ['-c', 'echo >"$0"', join(folder, pipe)]);
}

it('before it has said who sends for it: what wakes that one is for the line that is there', async () => {
  print('a');
  const first = startLine(/sender=\$!/u, (found) => `${found}; kill -KILL $$`);
  first.tell('attach 0 0\n');
  await first.said('blocks a');
  // It waits to be woken, and has come first.
  const second = startLine();
  second.tell('attach 0 0\n');
  await second.said('blocks a');
  print('a', 'b');
  wake('note');
  expect(await second.said('blocks b')).toEqual(['blocks a', 'blocks b']);
  await end(second);
  await first.closed;
});

it('in the middle of an acknowledgement: the room of the blocks before that is not given again', async () => {
  print('a', 'b', 'c', 'd', 'e');
  const first = startLine(
    /echo \$taken (?<redirection>>+taken\.\$first)/u,
    // The file is opened, and nothing is written yet.
    (found, redirection) => `[ $taken != 3 ] || { : ${redirection}; kill -KILL $$; }; ${found}`,
  );
  first.tell('ack out 2\nack out 3\n');
  await first.closed;
  const second = startLine();
  second.tell('ack out 4\n');
  await end(second);
  const tokens = Buffer.alloc(100);
  // Of the third twice: nobody knows whether it was given.
  expect(readSync(pipes.get('token.out') ?? -1, tokens)).toBe(5);
  expect(['out.0', 'out.2', 'out.3', 'out.4'].map((name) => existsSync(join(folder, name)))).toEqual([
    false,
    false,
    false,
    true,
  ]);
});

it('while it reads what is to be masked: what reads it for that line writes into no answer of the next', async () => {
  const mask = join(folder, 'mask');
  writeFileSync(join(folder, 'settings'), `uid\n${mask}\n`);
  writeFileSync(mask, 'first-one\n');
  print('a');
  const slow = `sh -c 'all=$(cat "$0"); : >begun; read -r _ <gate; echo "$all"; echo >later' "$mask" >`;
  const first = startLine(/head -c 65537 "\$mask" >/u, () => slow);
  first.tell('attach 0 0\n');
  await expect.poll(() => existsSync(join(folder, 'begun')), { timeout: 10_000, interval: 20 }).toBe(true);
  // Its size is told, and not yet what it is.
  const second = startLine(/cat masks\.\S+/u, (found) => `echo >gate; read -r _ <later; ${found}`);
  await once(second.shell.stderr ?? second.shell, 'data');
  writeFileSync(mask, 'other\n');
  second.tell('attach 0 0\n');
  expect(await second.said('blocks a')).toEqual(['masks other\n', 'blocks a']);
  await end(second);
  await first.closed;
});
