import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { eventsOf, eventually, folder, linesOf, penstock, pipeline, start } from './command.ts';

/** The largest resident size that the process has had, in MiB. */
function peakMiB(pid: number): number {
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

describe('the output of stages', () => {
  it('passes raw, line by line: ANSI, CR, NUL and bytes that are no UTF-8', async () => {
    const cwd = folder({ ...pipeline('  a: {run: "cat data"}'), data: '' });
    const data = Buffer.from([
      0x1b, 0x5b, 0x33, 0x31, 0x6d, 0x72, 0x0d, 0x6f, 0x00, 0xff, 0xfe, 0x0a, 0xe2, 0x80, 0xa8, 0x0a,
    ]);
    writeFileSync(join(cwd, 'data'), data);
    const command = start(['run'], { cwd });
    const chunks: Buffer[] = [];
    command.child.stdout?.removeAllListeners('data');
    command.child.stdout?.setEncoding('latin1').on('data', (text: string) => chunks.push(Buffer.from(text, 'latin1')));
    await command.ended;
    const prefix = Buffer.from('a        | ');
    expect(Buffer.concat(chunks).subarray(0, 2 * prefix.length + data.length)).toEqual(
      Buffer.concat([prefix, data.subarray(0, 12), prefix, data.subarray(12)]),
    );
  });

  it('in JSON is U+FFFD where it is no UTF-8, without its line ends, one event a line', async () => {
    const { stdout } = await penstock(['run', '--json'], {
      cwd: folder(pipeline(String.raw`  a: {run: "printf 'one\\r\\ntwo \\377 \\342\\200\\250 \\033[1m\\rx\\nthree'"}`)),
    });
    const events = eventsOf(stdout);
    expect(linesOf(events)).toEqual(['one', 'two \ufffd \u2028 \u001b[1m\rx', 'three']);
    expect(events.find((event) => event.type === 'stage_completed')?.['logs']).toBe(
      'one\r\ntwo \ufffd \u2028 \u001b[1m\rx\nthree\n',
    );
  });

  it('shows stage names aligned, and of long ones both ends', async () => {
    const long = 'a-very-long-name-of-a-stage-that-goes-on';
    const { stdout } = await penstock(['run'], {
      cwd: folder(pipeline(`  ${long}: {run: echo x}\n  ビルド: {run: echo y}`)),
    });
    expect(stdout).toContain('a-very-lo…stage-that-goes-on | x\n');
    expect(stdout).toContain(`ビルド${' '.repeat(22)} | y\n`);
  });

  it('colours the prefix with --color only, and begins it with a reset', async () => {
    const cwd = folder(pipeline(String.raw`  a: {run: "printf '\\033[41mred\\nnext\\n'"}`));
    const plain = (await penstock(['run'], { cwd })).stdout;
    expect(plain.replaceAll('\u001b[41m', '')).not.toContain('\u001b');
    const colored = (await penstock(['run', '--color'], { cwd })).stdout;
    expect(colored).toContain(
      '\u001b[0m\u001b[36ma        |\u001b[0m \u001b[41mred\n\u001b[0m\u001b[36ma        |\u001b[0m next\n',
    );
    expect((await penstock(['run'], { cwd, env: { NO_COLOR: '1', FORCE_COLOR: '1' } })).stdout).not.toContain(
      '\u001b[0m',
    );
  });

  it('of a line longer than 64 KiB comes in pieces with a mark', async () => {
    const { stdout } = await penstock(['run'], {
      cwd: folder(pipeline(`  a: {run: "head -c 150000 /dev/zero | tr '\\\\0' x"}`)),
    });
    const pieces = stdout.split('\n').filter((line) => line.startsWith('a        | '));
    expect(pieces.map((piece) => piece.endsWith('x …[line goes on]'))).toEqual([true, true, false]);
    expect(pieces.join('').replaceAll(/[^x]/g, '').length).toBe(150_000);
  });

  it('of 500 MB without a line end does not grow the command', async () => {
    const cwd = folder(
      pipeline(
        `  a: {run: "head -c 500000000 /dev/zero | tr '\\\\0' x; touch over; while ! test -e go; do sleep 0.02; done; exit 1"}`,
      ),
    );
    const command = start(['run', '--quiet'], { cwd });
    await eventually(() => existsSync(join(cwd, 'over')), 'the line was printed');
    const peak = peakMiB(command.child.pid ?? 0);
    writeFileSync(join(cwd, 'go'), '');
    const { stdout } = await command.ended;
    expect(peak).toBeLessThan(250);
    expect(stdout).toMatch(/^a {8}> its last \d+ KiB of output:\n/);
    expect(stdout.length).toBeLessThan(100_000);
  });

  it('of a stage that prints without end waits for a terminal that does not read, in bounded memory', async () => {
    const command = start(['run'], {
      cwd: folder(
        pipeline('  a: {run: "echo ready; yes | head -c 300000000; exit 3"}\n  b: {run: "yes | head -c 100000000"}'),
      ),
    });
    await command.until('stdout', '| ready');
    command.child.stdout?.pause();
    // Whatever it would gather, it has gathered when it has not been scheduled for a while.
    const pid = command.child.pid ?? 0;
    const ticks = (): string => readFileSync(`/proc/${pid}/stat`, 'latin1').split(' ').slice(13, 15).join(' ');
    for (let last = '', quiet = 0; quiet < 5;) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      quiet = ticks() === last ? quiet + 1 : 0;
      last = ticks();
    }
    expect(peakMiB(pid)).toBeLessThan(250);
    command.child.kill('SIGINT');
    command.child.stdout?.resume();
    expect((await command.ended).code).toBe(130);
  });

  it('is shown whole and in order, stage by stage', async () => {
    const count = 200_000;
    const { code, stdout } = await penstock(['run', '-j4'], {
      cwd: folder(pipeline(['a', 'b', 'c'].map((name) => `  ${name}: {run: "seq ${count}"}`).join('\n'))),
    });
    expect(code).toBe(0);
    for (const name of ['a', 'b', 'c']) {
      const prefix = `${name}        | `;
      const lines = stdout.split('\n').filter((line) => line.startsWith(prefix));
      expect(lines.length).toBe(count);
      expect(lines.every((line, index) => line === `${prefix}${index + 1}`)).toBe(true);
    }
  });
});
