/** The command against the real server, started as a user does it. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  eventsOf,
  penstock,
  RunningCommand,
  pipeline,
  type CommandEnd,
  type CommandOptions,
  type JsonEvent,
} from './command.ts';

const BOOTSTRAP = fileURLToPath(new URL('../../bootstrap/penstock.js', import.meta.url));

const STAGES = `
  build: {run: 'echo hello; echo "version=1.2" >> $SERVICE_OUTPUT', outputs: [version]}
  test: {after: build, matrix: {n: [1, 2]}, run: 'echo "v \${{ stages.build.outputs.version }} \${{ matrix.n }}" >&2; printf rest'}
  flaky: {retry: {max: 1, delay: 1s}, run: 'test $PENSTOCK_ATTEMPT = 2'}
  slow: {run: 'echo x; sleep 30', timeout: 1s}
  bad: {run: exit 3}
  later: {after: bad, run: echo no}
  cleanup: {after: bad, when: always(), run: 'printf "a\\r\\nb\\rc \\377\\n"; echo y=1 >> $SERVICE_OUTPUT'}`;

/** The server and the command find the data folder by the same variable, and not that of whoever runs the tests. */
const dataFolder = (): Record<string, string> => ({ XDG_DATA_HOME: join(cwd, 'share') });

/** The command, with the server's data folder. */
const command = (args: readonly string[], { env, input }: Partial<CommandOptions> = {}): Promise<CommandEnd> =>
  penstock(args, { cwd, env: { ...dataFolder(), ...env }, ...(input === undefined ? {} : { input }) });

let cwd: string;
let server: ChildProcess;
let url: string;

beforeAll(async () => {
  cwd = mkdtempSync(join(tmpdir(), 'penstock-cli-serve-'));
  for (const [name, text] of Object.entries(pipeline(STAGES))) writeFileSync(join(cwd, name), text);
  server = spawn(process.execPath, [BOOTSTRAP, 'serve', '--listen', '127.0.0.1:0'], {
    cwd,
    // A stage waits for a file that only the tests' own user may write.
    env: { ...process.env, ...dataFolder(), SERVICE_STAGE_UIDS: 'off', SERVICE_DRAIN: '10s' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  server.stderr?.resume();
  url = await new Promise<string>((resolve, reject) => {
    let output = '';
    server.once('exit', (code) => reject(new Error(`serve ended with ${code}:\n${output}`)));
    if (server.stdout === null) throw new Error('no output');
    createInterface({ input: server.stdout }).on('line', (line) => {
      output += `${line}\n`;
      const address = /listens on (http:\/\/\S+)/.exec(line)?.[1];
      if (address !== undefined) resolve(address);
    });
  });
});

afterAll(async () => {
  if (server.exitCode === null && server.signalCode === null) {
    server.kill('SIGTERM');
    await once(server, 'exit');
  }
  rmSync(cwd, { recursive: true, force: true });
});

/** Two runs differ in their times, and in how the lines of different stages interleave. */
function comparable(events: readonly JsonEvent[]): string[] {
  return events
    .map((event) => JSON.stringify({ ...event, timestamp: 'T', ...('dueAt' in event ? { dueAt: 'T' } : {}) }))
    .toSorted();
}

describe('the command and the real server', () => {
  it('a local and a triggered run tell the same events with the same payloads', async () => {
    // The key lies in the data folder that both find by default.
    const triggered = await command(['trigger', '--json', '--server', url]);
    const local = await command(['run', '--json']);
    expect([triggered.code, local.code]).toEqual([1, 1]);
    expect(comparable(eventsOf(triggered.stdout))).toEqual(comparable(eventsOf(local.stdout)));
    expect(eventsOf(triggered.stdout).at(-1)).toMatchObject({ type: 'pipeline_completed', status: 'FAILED' });
  });

  it('`logs` replays whole what `trigger` followed, and ends with the run', async () => {
    const { stdout: id, code } = await command(['trigger', '--detach', '--server', url]);
    expect(code).toBe(0);
    const followed = await command(['logs', '-f', '--json', '--server', url, id.trim()]);
    const replayed = await command(['logs', '--json', '--server', url, id.trim()]);
    expect(followed.code).toBe(1);
    expect(comparable(eventsOf(replayed.stdout))).toEqual(comparable(eventsOf(followed.stdout)));
  });

  it('`logs` without `--follow` leaves a run that goes on', async () => {
    const { stdout: id } = await command(['trigger', '--detach', '--server', url, '-'], {
      input: `pipeline: {name: long}\nstages: {a: {run: "while ! test -e enough; do date; sleep 0.1; done"}}\n`,
    });
    const { code, stdout } = await command(['logs', '--server', url, id.trim()]);
    expect(code).toBe(0);
    expect(stdout).not.toContain('STAGE ');
    writeFileSync(join(cwd, 'share', 'penstock', 'work', '0', id.trim(), 'shared', 'enough'), '');
    expect((await command(['logs', '-f', '--server', url, id.trim()])).code).toBe(0);
  });

  it('refuses a wrong key and an unknown run in one line', async () => {
    const wrong = await command(['trigger', '--server', url], { env: { SERVICE_API_KEY: 'wrong' } });
    expect([wrong.code, wrong.stderr]).toEqual([
      4,
      `penstock: the server ${url} does not accept the token from SERVICE_API_KEY\n`,
    ]);
    const unknown = await command(['logs', '--server', url, '0192f0c1-2b3c-7abc-8def-0123456789ab']);
    expect(unknown.code).toBe(4);
    expect(unknown.stderr).toContain('there is no run 0192f0c1-2b3c-7abc-8def-0123456789ab');
  });

  it('who follows a run is told which stage waits for approval, once, and how to decide', async () => {
    const file = join(cwd, 'gate.yaml');
    writeFileSync(
      file,
      'pipeline: {name: g}\nstages: {a: {run: "true"}, go: {after: a, approval: {}}, b: {after: go, run: "true"}}\n',
    );
    const following = new RunningCommand(['trigger', '--server', url, file], { cwd, env: dataFolder() });
    await following.until('stderr', "'go' waits for approval");
    const [, id = ''] = /penstock approve (\S+) go/.exec(following.stderr) ?? [];
    expect((await command(['approve', '--server', url, id, 'go'])).code).toBe(0);
    const { code, stderr } = await following.ended;
    expect([code, stderr.match(/waits for approval/g)?.length]).toEqual([0, 1]);
  });
});
