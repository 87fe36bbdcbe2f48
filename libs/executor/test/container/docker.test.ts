/**
 * What a docker engine is asked for, by an engine that is none: it keeps what it is asked, and its "container" is a process that
 * answers as the first one of a container does. No test here has a real docker.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ContainerExecutor } from '../../src/container/container-executor.ts';
import { findEngine } from '../../src/container/find-engine.ts';
import type { StageExit } from '../../src/contract/port.ts';
import { RecordingSink } from '../../src/testing/executor-suite.ts';

const IMAGE_ID = 'sha256:0123';
const USER = { uid: process.getuid?.() === 0 ? 190_007 : (process.getuid?.() ?? 0), gid: process.getgid?.() ?? 0 };
/** Of `boot.sh` only what its owner hears; nothing here ends processes by more than their number. */
const FIRST_PROCESS = `exec 3<"$0/control" 5>"$0/out" 7>"$0/life"
echo up >&7; read -r order <&3; echo "told $order" >&5; echo "end 0 0" >&7; exit 0`;

interface CreateBody {
  readonly Entrypoint: readonly string[];
  readonly Cmd: readonly string[];
  readonly HostConfig: { readonly Mounts: readonly { readonly Source: string; readonly Target: string }[] };
}

let folder: string;
let server: Server;
let asked: string[];
let created: CreateBody | undefined;
let first: ChildProcess | undefined;
/** What it says in place of how a container ended, one after the other: a status, or nothing at all. */
let hiccups: (number | 'silence')[];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-docker-'));
  asked = [];
  created = undefined;
  first = undefined;
  hiccups = [];
  server = createServer((request, response) => {
    let body = '';
    request.on('data', (data: Buffer) => {
      body += data.toString();
    });
    request.on('end', () => {
      const what = `${request.method} ${request.url}`;
      const hiccup = what.endsWith('/json') && first?.exitCode === 0 ? hiccups.shift() : undefined;
      if (hiccup === 'silence') {
        request.socket.destroy();
        return;
      }
      const [status, answer] = hiccup === undefined ? answerTo(what, body) : [hiccup, { message: 'not now' }];
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(answer === undefined ? '' : JSON.stringify(answer));
    });
  });
  await once(server.listen(join(folder, 'socket')), 'listening');
});
afterEach(async () => {
  first?.kill('SIGKILL');
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
  rmSync(folder, { recursive: true, force: true });
});

function answerTo(what: string, body: string): [status: number, answer?: unknown] {
  const [call = ''] = what.replaceAll(/penstock-[0-9a-f]+/g, 'NAME').split('&', 1);
  if (asked.at(-1) !== call) asked.push(call);
  if (call === 'GET /_ping') return [200, 'OK'];
  if (call.startsWith('GET /v1.40/images/')) return [200, { Id: IMAGE_ID, Config: { Cmd: ['sh'] } }];
  if (call.startsWith('POST /v1.40/containers/create')) {
    created = JSON.parse(body) as CreateBody;
    return [201, { Id: 'made' }];
  }
  if (call.endsWith('/start')) {
    const control = created?.HostConfig.Mounts[0]?.Source ?? '';
    first = spawn('sh', ['-c', FIRST_PROCESS, control], { stdio: 'ignore' });
    return [204];
  }
  if (call.startsWith('DELETE')) return [204];
  const isRunning = first !== undefined && first.exitCode === null && first.signalCode === null;
  const state = { Pid: isRunning ? first?.pid : 0, Running: isRunning, ExitCode: first?.exitCode ?? 0 };
  return created === undefined ? [404] : [200, { State: { ...state, OOMKilled: false } }];
}

it('is found by its socket where there is no podman', async () => {
  const path = process.env['PATH'];
  process.env['PATH'] = folder;
  try {
    const engine = { kind: 'docker', socketPath: join(folder, 'socket') };
    expect(await findEngine({ DOCKER_HOST: `unix://${engine.socketPath}` })).toMatchObject({ engine });
    const other = await findEngine({ DOCKER_HOST: `unix://${join(folder, 'nothing')}` });
    expect(other).toMatchObject({ engine: null, why: expect.stringContaining('no socket of its engine') });
  } finally {
    process.env['PATH'] = path;
  }
});

it('is asked again how a stage ended where it does not answer; what it refuses is its word', async () => {
  const executor = new ContainerExecutor({
    engine: { kind: 'docker', socketPath: join(folder, 'socket') },
    owner: 'docker test',
  });
  const run = async (): Promise<StageExit> => {
    const spec = { helperKey: 'key', commands: [{ script: 'true', bindings: {} }], env: {}, cwd: folder };
    const place = { image: { name: 'node:26' }, network: 'none' as const };
    const more = { folders: [folder], timeoutMs: 60_000, user: USER, place };
    return await executor.start({ ...spec, ...more }, new RecordingSink()).ended;
  };
  try {
    hiccups = ['silence', 500];
    expect(await run()).toEqual({ kind: 'exit', code: 0 });
    first = undefined;
    hiccups = [409];
    expect(await run()).toEqual({ kind: 'lost', cause: 'a container could not be looked at: not now' });
    expect(hiccups).toEqual([]);
  } finally {
    await executor.close();
  }
});

it('is asked for a container that has nothing but the image, the folders and its limits', async () => {
  const executor = new ContainerExecutor({
    engine: { kind: 'docker', socketPath: join(folder, 'socket') },
    owner: 'docker test',
    limits: { memoryBytes: 0, processes: 0, diskBytes: 1024 ** 3, inodes: 1e6, openFiles: 1_024 },
  });
  try {
    const sink = new RecordingSink();
    const spec = { helperKey: 'key', commands: [{ script: 'true', bindings: {} }], env: { SECRET: 'hidden-value' } };
    const resources = { cpu: 1.5, memoryBytes: 64 * 1024 ** 2 };
    const place = { image: { name: 'node:26' }, network: 'none' as const, resources };
    const stage = executor.start(
      { ...spec, cwd: folder, folders: [folder], timeoutMs: 60_000, user: USER, place },
      sink,
    );
    expect([await stage.ended, sink.text()]).toEqual([{ kind: 'exit', code: 0 }, 'told go\n']);
  } finally {
    await executor.close();
  }
  expect(asked).toEqual([
    'GET /v1.40/images/docker.io%2Flibrary%2Fnode%3A26/json',
    'POST /v1.40/containers/create?name=NAME',
    'GET /v1.40/containers/NAME/json',
    'POST /v1.40/containers/NAME/start',
    'GET /v1.40/containers/NAME/json',
    'DELETE /v1.40/containers/NAME?force=true',
  ]);
  expect(created).toMatchObject({
    Image: IMAGE_ID,
    Entrypoint: ['sh'],
    Cmd: ['-c', expect.any(String), '/run/penstock'],
    User: `${USER.uid}:${USER.gid}`,
    HostConfig: {
      Mounts: [
        { Type: 'bind', Target: '/run/penstock', ReadOnly: true },
        { Type: 'bind', Source: folder, Target: folder, ReadOnly: false },
      ],
      NetworkMode: 'none',
      CapDrop: ['ALL'],
      CapAdd: [],
      SecurityOpt: ['no-new-privileges'],
      LogConfig: { Type: 'none' },
      PidsLimit: 4096,
      NanoCpus: 1.5e9,
      Memory: 64 * 1024 ** 2,
      MemorySwap: 64 * 1024 ** 2,
    },
  });
  expect(JSON.stringify(created)).not.toContain('hidden-value');
});
