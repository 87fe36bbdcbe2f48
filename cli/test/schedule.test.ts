import { describe, expect, it } from 'vitest';
import { folder, penstock } from './command.ts';
import { answering } from './fake-server.ts';

const LINE = {
  id: '00000000-0000-7abc-8def-0123456789ab',
  provider: 'git_host_a',
  repository: 'acme/shop',
  cron: '0 3 * * *',
  inputs: [],
  nextAt: '2026-01-02T03:00:00.000Z',
  lastRunId: null,
  paused: false,
};

describe('penstock schedule', () => {
  it('lists what is started when', async () => {
    const { env } = await answering({
      schedules: [LINE, { ...LINE, repository: 'acme/\u001b[31mred', paused: true, nextAt: null }],
    });
    const { code, stdout } = await penstock(['schedule', 'ls'], { cwd: folder(), env });
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^CRON \(UTC\) +REPOSITORY +INPUTS +NEXT +LAST RUN +ID\n0 3 \* \* \* +acme\/shop +- +2026-01-02 03:00Z +- +0000.*ab\n.* paused /,
    );
    expect(stdout).not.toContain('\u001b');
    expect(JSON.parse((await penstock(['schedule', 'ls', '--json'], { cwd: folder(), env })).stdout)).toHaveLength(2);
    const none = await answering({ schedules: [] });
    expect((await penstock(['schedule', 'ls'], { cwd: folder(), env: none.env })).stderr).toContain(
      'nothing is started',
    );
  });

  it('shows the inputs, by which lines of one cron are told apart', async () => {
    const inputs = [
      { key: 'target', value: 'staging' },
      { key: 'note', value: 'a long text, of which the middle is left out' },
    ];
    const { env } = await answering({ schedules: [LINE, { ...LINE, inputs }] });
    const { stdout } = await penstock(['schedule', 'ls'], { cwd: folder(), env });
    expect(stdout).toContain('target=stagin…ich the middle is left out');
    const { env: pausing } = await answering({ pauseSchedule: { ...LINE, inputs, paused: true, nextAt: null } });
    expect((await penstock(['schedule', 'pause', LINE.id], { cwd: folder(), env: pausing })).stderr).toContain(
      "'0 3 * * *' of acme/shop (target=staging note=a long text, of which the middle is left out) is paused.",
    );
  });

  it('pauses and resumes a line, and says what comes of it', async () => {
    const paused = await answering({ pauseSchedule: { ...LINE, paused: true, nextAt: null } });
    const first = await penstock(['schedule', 'pause', LINE.id], { cwd: folder(), env: paused.env });
    expect(first).toMatchObject({ code: 0, stderr: expect.stringContaining('is paused') as unknown });
    expect(paused.requests[0]?.variables).toEqual({ id: LINE.id });
    const resumed = await answering({ resumeSchedule: LINE });
    const second = await penstock(['schedule', 'resume', LINE.id], { cwd: folder(), env: resumed.env });
    expect(second.stderr).toContain("'0 3 * * *' of acme/shop starts its next run at 2026-01-02 03:00Z");
  });

  it.each([
    [['schedule', 'lst'], "did you mean 'schedule ls'?"],
    [['schedule', 'pause'], 'needs the id'],
    [['schedule', 'ls', 'a1'], 'takes no argument'],
  ])('%j is wrong usage', async (args, message) => {
    expect(await penstock(args, { cwd: folder() })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(message) as unknown,
    });
  });
});
