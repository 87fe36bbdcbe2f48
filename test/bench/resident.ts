/**
 * What `penstock serve` and its broker take of the machine's memory: after the start, after 1,000 and 10,000 three-stage runs, and when
 * nothing has happened for a minute; beside a bare Node that has loaded what speaks to the broker and answers requests.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { setTimeout as rest } from 'node:timers/promises';
import { startServer, temporaryFolder, type RunningServer } from '../support/server.ts';
import { endRuns } from './ended-runs.ts';
import { memoryOf } from './process-memory.ts';

const [FEW_RUNS, MANY_RUNS] = [1_000, 10_000];
const IN_FLIGHT = 20;
const SETTLED_MS = 20_000;
const IDLE_MS = 60_000;
const STARTED_MB_MAX = 200;
const ENDED_MB_MAX = 300;
const FLOOR = `
  import { connect } from '@nats-io/transport-node';
  import { jetstream } from '@nats-io/jetstream';
  import fastify from 'fastify';
  import mercurius from 'mercurius';
  const app = fastify();
  app.register(mercurius, { schema: 'type Query { version: String }', jit: 1 });
  await app.listen({ host: '127.0.0.1', port: 0 });
  console.log([typeof connect, typeof jetstream].join());
`;

export async function benchResident(): Promise<string[]> {
  const floor = await bareMb();
  // As `npm start` does it; the first start of all compiles, and is not what a server is started with every day.
  const compiled = temporaryFolder();
  const env = { NODE_COMPILE_CACHE: compiled.path };
  const first = await startServer({ env });
  await first.stop();
  const server = await startServer({ env, dataDir: first.dataDir });
  try {
    const lines = [`a bare Node with the client of the broker, fastify and mercurius: ${floor.toFixed(0)} MB`];
    const tell = (when: string, target = ''): void => {
      lines.push(
        `${when}: serve ${now(server.pid)} (${memoryOf(server.pid, 'VmHWM').toFixed(0)} at its peak)${target}, its broker ${now(brokerPid(server))}; load ${loadavg()[0]?.toFixed(1)}`,
      );
    };
    await rest(SETTLED_MS);
    tell('after the start', `, target ${STARTED_MB_MAX}`);
    await endRuns(server, FEW_RUNS, IN_FLIGHT);
    tell(`after ${FEW_RUNS} runs`);
    const before = performance.now();
    await endRuns(server, MANY_RUNS - FEW_RUNS, IN_FLIGHT);
    const rate = (MANY_RUNS - FEW_RUNS) / ((performance.now() - before) / 1_000);
    tell(`after ${MANY_RUNS} runs (${rate.toFixed(0)} a second)`, `, target ${ENDED_MB_MAX}`);
    await rest(IDLE_MS);
    tell('when nothing has happened for a minute');
    return lines;
  } finally {
    await server.stop();
    rmSync(server.dataDir, { recursive: true, force: true });
    compiled.remove();
  }
}

async function bareMb(): Promise<number> {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', FLOOR], {
    cwd: import.meta.dirname,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    await once(child.stdout, 'data');
    return memoryOf(child.pid ?? 0, 'VmRSS');
  } finally {
    child.kill('SIGKILL');
  }
}

function brokerPid({ dataDir }: RunningServer): number {
  return (JSON.parse(readFileSync(join(dataDir, 'broker', 'pid'), 'utf8')) as { pid: number }).pid;
}

function now(pid: number): string {
  return `${memoryOf(pid, 'VmRSS').toFixed(0)} MB`;
}
