import { once } from 'node:events';
import { readFileSync, readdirSync, watch } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  eventsOf,
  eventually,
  folder,
  linesOf,
  penstock,
  pipeline,
  processesWith,
  start,
  outlineOf,
} from './command.ts';

let marks = 0;
/** Found again in the environment of whatever a stage leaves behind. */
function newMark(): string {
  marks += 1;
  return `cli-test-${process.pid}-${marks}`;
}

/** `: $$` gives each a shell of its own, which carries the mark: one that is forked shows its helper's environment. */
const SLEEPER = (mark: string): string =>
  `  sleeper: {env: {MARK: ${mark}}, run: ": $$; sleep 600 & (setsid sleep 600 &) ; echo ready; wait"}`;
const STUBBORN = (mark: string): string =>
  `  stubborn: {env: {MARK: ${mark}}, run: ": $$; trap 'echo no' TERM; echo ready; while :; do sleep 0.05 || true; done"}`;

describe('^C during penstock run', () => {
  it('cancels: SIGTERM to all processes, no further stage, exit code 130, nothing left behind', async () => {
    const mark = newMark();
    // Its own: other runs of this machine have their folders where this one would.
    const temporary = folder();
    const command = start(['run', '--json'], {
      cwd: folder(pipeline(`${SLEEPER(mark)}\n  next: {run: "true", after: sleeper}`)),
      env: { TMPDIR: temporary },
    });
    await command.until('stdout', '"ready"');
    expect(processesWith(mark).length).toBeGreaterThanOrEqual(3);
    expect(readdirSync(temporary)).toContainEqual(expect.stringMatching(/^penstock-run-/));
    command.child.kill('SIGINT');
    const { code, stdout, stderr } = await command.ended;
    expect(code).toBe(130);
    expect(stderr).toContain('a second ^C ends it at once');
    const events = eventsOf(stdout);
    expect(outlineOf(events)).toEqual([
      'stage_started sleeper',
      'pipeline_cancelling ',
      'pipeline_cancelled CANCELLED',
    ]);
    expect(events.at(-1)).toMatchObject({ type: 'pipeline_cancelled', cancelledStages: 2 });
    expect(processesWith(mark)).toEqual([]);
    expect(readdirSync(temporary).filter((name) => name.startsWith('penstock-run-'))).toEqual([]);
  });

  it('leaves no folder behind where the signal comes as soon as the run has one', async () => {
    const temporary = folder();
    const made = watch(temporary);
    const cwd = folder(pipeline('  one: {run: "sleep 600"}'));
    const command = start(['run'], { cwd, env: { TMPDIR: temporary } });
    await once(made, 'change');
    made.close();
    command.child.kill('SIGTERM');
    expect(await command.ended).toMatchObject({ code: 143, signal: null });
    expect(readdirSync(temporary).filter((name) => name.startsWith('penstock-run-'))).toEqual([]);
  });

  it('leaves no folder behind where the signal comes when the run is over', async () => {
    const temporary = folder();
    const command = start(['run'], { cwd: folder(pipeline('  one: {run: "true"}')), env: { TMPDIR: temporary } });
    await command.until('stdout', '1 passed');
    command.child.kill('SIGTERM');
    // It may have ended before.
    const { code, signal } = await command.ended;
    expect(code ?? signal).toBe(code === null ? 'SIGTERM' : 0);
    expect(readdirSync(temporary).filter((name) => name.startsWith('penstock-run-'))).toEqual([]);
  });

  it('lets a stage end in its own way within the grace, and shows its last words', async () => {
    const cwd = folder(
      pipeline(
        `  tidy: {run: "trap 'echo tidying up; echo done > tidied; exit 0' TERM; echo ready; while :; do sleep 0.05; done"}`,
      ),
    );
    const command = start(['run'], { cwd });
    await command.until('stdout', '| ready');
    command.child.kill('SIGINT');
    const { code, stdout } = await command.ended;
    expect(code).toBe(130);
    expect(stdout).toContain('tidy     | tidying up\n');
    expect(stdout).toMatch(/\ntidy +CANCELLED .*\n\nCANCELLED in [\d.]+ s: 1 cancelled\n$/);
    expect(readFileSync(join(cwd, 'tidied'), 'utf8')).toBe('done\n');
  });

  it('tells what a stage prints while it is stopped between pipeline_cancelling and pipeline_cancelled, as a server does', async () => {
    const cwd = folder(
      pipeline(
        `  tidy: {run: "exec 2>/dev/null; trap 'echo tidying up; exit 0' TERM; echo ready; while :; do sleep 0.05; done"}`,
      ),
    );
    const command = start(['run', '--json'], { cwd });
    await command.until('stdout', '"ready"');
    command.child.kill('SIGINT');
    const events = eventsOf((await command.ended).stdout);
    expect(events.map(({ type, line }) => line ?? type)).toEqual([
      'stage_started',
      'ready',
      'pipeline_cancelling',
      'tidying up',
      'pipeline_cancelled',
    ]);
  });

  it('kills at once when it comes a second time', async () => {
    const mark = newMark();
    const command = start(['run'], { cwd: folder(pipeline(STUBBORN(mark))) });
    await command.until('stdout', '| ready');
    command.child.kill('SIGINT');
    await command.until('stdout', '| no');
    expect(processesWith(mark)).not.toEqual([]);
    command.child.kill('SIGINT');
    expect((await command.ended).code).toBe(130);
    expect(processesWith(mark)).toEqual([]);
  });

  it('is heard while the terminal takes no output', async () => {
    const mark = newMark();
    const command = start(['run'], {
      cwd: folder(pipeline(`  loud: {env: {MARK: ${mark}}, run: "echo ready; exec yes"}`)),
    });
    await command.until('stdout', '| ready');
    command.child.stdout?.pause();
    command.child.kill('SIGINT');
    await eventually(() => processesWith(mark).length === 0, 'the stage is gone');
    command.child.kill('SIGINT');
    const ended = new Promise((resolve) => command.child.once('exit', (code, signal) => resolve(code ?? signal)));
    expect(await ended).toBe('SIGINT');
    command.child.stdout?.destroy();
  });

  it('SIGTERM cancels likewise, with exit code 143', async () => {
    const mark = newMark();
    const command = start(['run'], { cwd: folder(pipeline(SLEEPER(mark))) });
    await command.until('stdout', '| ready');
    command.child.kill('SIGTERM');
    expect((await command.ended).code).toBe(143);
    expect(processesWith(mark)).toEqual([]);
  });

  it('a reader that goes away cancels the run', async () => {
    const mark = newMark();
    const command = start(['run'], {
      cwd: folder(pipeline(`  loud: {env: {MARK: ${mark}}, run: "while :; do echo line; sleep 0.01; done"}`)),
    });
    await command.until('stdout', '| line');
    command.child.stdout?.destroy();
    expect((await command.ended).code).toBe(141);
    expect(processesWith(mark)).toEqual([]);
  });

  it('kill -9 of the command leaves no process of its stages', async () => {
    const mark = newMark();
    const command = start(['run'], { cwd: folder(pipeline(SLEEPER(mark))) });
    await command.until('stdout', '| ready');
    command.child.kill('SIGKILL');
    await command.ended;
    await eventually(() => processesWith(mark).length === 0, 'all processes of the stage are gone');
    expect(processesWith(mark)).toEqual([]);
  });

  it('a retry that waits for its delay is cancelled with the rest', async () => {
    const command = start(['run', '--json'], {
      cwd: folder(pipeline('  a: {run: exit 1, retry: {max: 3, delay: 1h}}')),
    });
    await command.until('stdout', 'stage_retrying');
    command.child.kill('SIGINT');
    const { code, stdout } = await command.ended;
    expect(code).toBe(130);
    expect(outlineOf(eventsOf(stdout)).at(-1)).toBe('pipeline_cancelled CANCELLED');
  });

  it('a daemon that a successful stage leaves is gone before the next stage starts', async () => {
    const mark = newMark();
    const { code, stdout } = await penstock(['run', '--json'], {
      cwd: folder(
        pipeline(
          `  first: {env: {MARK: ${mark}}, run: "(setsid sleep 600 &) ; echo left"}\n  second: {after: first, run: "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\\\0' '\\\\n' | grep -c MARK=${mark} || true"}`,
        ),
      ),
    });
    expect([code, linesOf(eventsOf(stdout), 'second')]).toEqual([0, ['0']]);
    expect(processesWith(mark)).toEqual([]);
  });
});
