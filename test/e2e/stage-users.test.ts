/**
 * Stages of a server that root has started: what one key's stages reach of the machine and of another key's. It needs root
 * and namespaces; elsewhere it is reported as not run.
 */
import { execFileSync } from 'node:child_process';
import { appendFileSync, chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startServer, temporaryFolder, TRIGGER, type RunningServer } from '../support/server.ts';
import { readStream } from '../support/sse.ts';
import { until } from '../support/wait.ts';

const isRoot = process.platform === 'linux' && process.getuid?.() === 0;
const notRun = process.env['PENSTOCK_NOT_RUN_FILE'];
if (!isRoot && notRun !== undefined)
  appendFileSync(notRun, 'stages as users of their own: the tests do not run as root\n');

const home = temporaryFolder('penstock-users-');
const secret = join(home.path, 'secret');
let server: RunningServer;

interface Ended {
  readonly id: string;
  readonly status: string;
  readonly lines: readonly string[];
}

/** Runs one stage and gives its lines. Runs of one name are of one key. */
async function run(name: string, script: string): Promise<Ended> {
  const indented = script.replaceAll(/^/gm, '      ');
  const yaml = `pipeline: {name: ${name}}\nstages:\n  attack:\n    timeout: 60s\n    run: |\n${indented}\n`;
  const { data } = await server.graphql<{ triggerPipeline: { run: { id: string; status: string } } }>(TRIGGER, {
    yaml,
    waitSeconds: 60,
  });
  const { id, status } = data.triggerPipeline.run;
  const { events } = await readStream(`${server.url}/pipeline/${id}/logs`, server.apiKey);
  return {
    id,
    status,
    lines: events.filter(({ event }) => event === 'stage_log').map(({ data: { line } }) => String(line)),
  };
}

describe.runIf(isRoot)('a stage of a server that root has started', () => {
  beforeAll(async () => {
    // As root's own home: nobody else may enter it, and the data folder lies in it.
    chmodSync(home.path, 0o700);
    writeFileSync(secret, 'canary', { mode: 0o644 });
    const dataDir = join(home.path, 'share', 'penstock');
    mkdirSync(dataDir, { recursive: true });
    server = await startServer({
      dataDir,
      env: { SERVICE_STAGE_UIDS: '300000-300099', SERVICE_SLOTS: '2' },
      // As hardened machines and units have it: what the server makes for stages is to be theirs all the same.
      through: ['sh', '-c', 'umask 077; exec "$@"', 'sh'],
    });
  });
  afterAll(async () => {
    await server.stop();
    home.remove();
  });

  it('runs as a user of its key, with no right of root’s and no way to get one', async () => {
    const { status, lines } = await run(
      'who',
      'id -u; id -G; grep -E "^(CapEff|CapPrm|CapBnd|CapAmb|NoNewPrivs)" /proc/self/status; echo ok > made; cat made; echo to stderr > /dev/stderr',
    );
    expect([status, lines[0], lines[1]]).toEqual(['SUCCESS', lines[0], lines[0]]);
    expect(Number(lines[0])).toBeGreaterThanOrEqual(300_000);
    expect(lines.join('\n')).toMatch(
      /CapPrm:\s+0{16}\nCapEff:\s+0{16}\nCapBnd:\s+0{16}\nCapAmb:\s+0{16}\nNoNewPrivs:\s+1/,
    );
    expect(lines).toEqual(expect.arrayContaining(['ok', 'to stderr']));
  });

  it('has the same user in each run of its key, and another key has another', async () => {
    const first = await run('mine', 'id -u');
    const again = await run('mine', 'id -u');
    const other = await run('theirs', 'id -u');
    expect(again.lines).toEqual(first.lines);
    expect(other.lines).not.toEqual(first.lines);
  });

  it('reads nothing of the server: its data folder, its key, the home of its user, its environment, its memory', async () => {
    const key = join(server.dataDir, 'api-key');
    const { lines } = await run(
      'reads',
      [
        'set +e',
        `cat ${secret} ${key} 2>&1`,
        `ls ${home.path} ${server.dataDir}`,
        'ls /proc | grep -c "^[0-9]"',
        'cat /proc/1/environ /proc/1/mem 2>&1 | head -c 200',
        'cat /etc/shadow 2>&1',
        'exit 0',
      ].join('\n'),
    );
    const text = lines.join('\n');
    expect(text).not.toContain('canary');
    expect(text).not.toContain(readFileSync(key, 'utf8').trim());
    expect(text).not.toMatch(/root:[^\n]*:/);
    expect(text).toMatch(/Permission denied/);
  });

  it('reaches neither the files nor the processes of another key, while that one’s stage is running', async () => {
    const victim = run(
      'victim',
      'echo private > note; chmod 644 note; pwd; while [ ! -e stop ]; do sleep 0.05; done; cat note',
    );
    const workspace = await until('the workspace of the victim', async () => {
      const { data } = await server.graphql<{ runs: { id: string; pipelineName: string }[] }>(
        '{ runs(limit: 20) { id pipelineName } }',
      );
      const id = data.runs.find(({ pipelineName }) => pipelineName === 'victim')?.id;
      const path = join(server.dataDir, 'work', '0', id ?? '', 'shared');
      return id !== undefined && existsSync(join(path, 'note')) ? path : undefined;
    });
    const { lines } = await run(
      'robber',
      [
        'set +e',
        `cat ${workspace}/note; echo changed > ${workspace}/note; touch ${workspace}/stop; rm -rf ${workspace}`,
        `ls ${join(workspace, '..', '..')} ${join(workspace, '..')}`,
        'for process in /proc/[0-9]*; do cat $process/environ; done | tr "\\0" "\\n" | grep -c "PENSTOCK_PIPELINE=victim"',
        'kill -9 -1',
      ].join('\n'),
    );
    expect(lines.join('\n')).not.toContain('private');
    expect(lines).toContain('0');
    writeFileSync(join(workspace, 'stop'), '');
    expect(await victim).toMatchObject({ status: 'SUCCESS', lines: expect.arrayContaining(['private']) });
  });

  it('cannot make the clean-up of its folders remove anything else, by links that it swaps meanwhile', async () => {
    const target = join(home.path, 'precious');
    mkdirSync(target);
    for (let file = 0; file < 20; file += 1) writeFileSync(join(target, `file-${file}`), 'kept');
    const { id, status } = await run(
      'swapper',
      [
        `mkdir a b; ln -s ${target} link; mkdir -p deep/er; touch deep/er/file; chmod 000 deep/er; chmod 500 deep`,
        `rm -rf "$HOME/shared/b" && ln -s ${target} "$HOME/shared/b"; ln -s / "$HOME/root"`,
      ].join('\n'),
    );
    expect(status).toBe('SUCCESS');
    const folder = join(server.dataDir, 'work', '0', id);
    await until('the folder of the run is gone', () => !existsSync(folder));
    for (let file = 0; file < 20; file += 1) expect(readFileSync(join(target, `file-${file}`), 'utf8')).toBe('kept');
    expect(statSync('/etc').isDirectory()).toBe(true);
  });

  it('has no folder of root’s cloned for it by the server, which clones it for root', async () => {
    const repository = join(home.path, 'repository');
    const git = (...args: string[]): string =>
      execFileSync('git', ['-C', repository, '-c', 'user.name=a', '-c', 'user.email=a@b', ...args])
        .toString()
        .trim();
    execFileSync('git', ['init', '-q', '-b', 'main', repository]);
    writeFileSync(
      join(repository, '.pipeline.yaml'),
      'pipeline: {name: cloned}\nstages:\n  show:\n    run: cat .pipeline.yaml\n',
    );
    git('add', '-A');
    git('commit', '-q', '-m', 'one');
    const push = JSON.stringify({
      ref: 'refs/heads/main',
      after: git('rev-parse', 'HEAD'),
      repository: { full_name: 'root/private', clone_url: `file://${repository}` },
    });
    const { port } = new URL(server.url);
    const request = [
      'POST /webhook HTTP/1.1',
      `Host: 127.0.0.1:${port}`,
      'X-GitHub-Event: push',
      'Content-Type: application/json',
      `Content-Length: ${push.length}`,
      'Connection: close',
      '',
      push,
    ];
    const { lines } = await run(
      'cloner',
      `bash -c 'exec 3<>/dev/tcp/127.0.0.1/${port}; printf "%s\\r\\n" "$@" >&3; cat <&3; echo' - ${request.map((line) => `'${line}'`).join(' ')}`,
    );
    expect(lines.join('\n')).toContain('"code":"address_not_allowed"');
    const own = await fetch(`${server.url}/webhook`, {
      method: 'POST',
      headers: { 'x-github-event': 'push' },
      body: push,
    });
    expect(await own.json()).toMatchObject({ status: 'Success' });
  });

  it('publishes outputs from its own file, and nothing that it links there', async () => {
    const yaml = `pipeline: {name: outputs}\nstages:\n  a:\n    outputs: [x]\n    run: echo x=1 >> "$SERVICE_OUTPUT"\n  b:\n    outputs: [x]\n    run: rm "$SERVICE_OUTPUT"; ln -s ${secret} "$SERVICE_OUTPUT"\n`;
    const { data } = await server.graphql<{ triggerPipeline: { run: { id: string } } }>(TRIGGER, {
      yaml,
      waitSeconds: 60,
    });
    const kept = await server.graphql<{ artifacts: unknown[] }>(
      'query ($id: String!) { artifacts(run_id: $id) { stage key value } }',
      { id: data.triggerPipeline.run.id },
    );
    expect(kept.data.artifacts).toEqual([{ stage: 'a', key: 'x', value: '1' }]);
  });
});
