/**
 * A fleet of real `penstock runner` processes on one server (P37): how soon a burst of stages that do nothing is taken up while its
 * runners arrive, and again by runners that are there; what a runner that has nothing to do costs the server; and from that the
 * arithmetic for a fleet that no machine of a bench holds. Runners end with the bench, or by themselves when it is killed.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { setTimeout as rest } from 'node:timers/promises';
import PQueue from 'p-queue';
import { attachMachine } from '../support/runner-machine.ts';
import { descendantsOf } from '../support/processes.ts';
import { startServer, temporaryFolder, trigger, type RunningServer } from '../support/server.ts';
import { until } from '../support/wait.ts';
import { median } from './figures.ts';
import { processorTimes } from './processor-times.ts';

const RUNNERS = 50;
/** Processes that start at a time: each takes a second of a processor. */
const STARTING = 6;
/** Of one process, on a machine that does much else. */
const START_MS_MAX = 60_000;
const RUNS = 20;
const STAGES_A_RUN = 50;
const BURST = RUNS * STAGES_A_RUN;
const IDLE_MS = 10_000;
const DONE_MS_MAX = 90_000;
const FLEET = 10_000;
/** Of a runner that nobody ends. */
const LEFT_ALONE = ['--idle-timeout', '5m'];

export async function benchFleet(): Promise<string[]> {
  const folder = temporaryFolder('penstock-fleet-');
  const children: ChildProcess[] = [];
  // Else each looks at its start what it could run sandboxes and containers with.
  process.env['SERVICE_EXECUTORS'] = 'process';
  const server = await startServer({ env: { SERVICE_SLOTS: '1', SERVICE_LOG_LEVEL: 'warn' } });
  try {
    const token = await tokenOf(server);
    const alone = await idleCost(server);
    const waiting = await triggerBurst(server, 'arriving');
    const from = Date.now();
    const starts = new PQueue({ concurrency: STARTING, timeout: START_MS_MAX });
    const arrived = await Promise.all(
      Array.from({ length: RUNNERS }, (_, index) =>
        starts.add(async () => {
          await attachMachine({
            folder: folder.path,
            name: `machine-${index}`,
            server: server.url,
            token,
            arguments: LEFT_ALONE,
            started: (child) => children.push(child),
          });
          return Date.now() - from;
        }),
      ),
    );
    const arriving = await takenUp(server, waiting, from);
    const fleet = await idleCost(server);
    const bytes = median(children.map(({ pid = 0 }) => residentBytes(pid)));
    const before = costOf(server);
    const at = Date.now();
    const standing = await takenUp(server, await triggerBurst(server, 'standing'), at);
    const stage = scale(minus(costOf(server), before), 1 / BURST);
    const runner = scale(minus(fleet, alone), 1 / RUNNERS);
    return [
      `${RUNNERS} runners of ${(bytes / 1024 ** 2).toFixed(0)} MiB start, ${STARTING} at a time: the first takes stages after ${seconds(Math.min(...arrived))}, the last after ${seconds(Math.max(...arrived))}`,
      `${BURST} stages that wait for them: ${timesOf(arriving)}; ${seconds(arriving.last - Math.min(...arrived))} after the first runner, ${seconds(Math.max(0, arriving.last - Math.max(...arrived)))} after the last`,
      `${BURST} stages, with ${RUNNERS} runners that are there: ${timesOf(standing)} after the first trigger`,
      `a stage takes ${stage.serve.toFixed(1)} ms of the server's processor and ${stage.broker.toFixed(1)} ms of the broker's`,
      `a runner that has nothing to do takes ${runner.serve.toFixed(2)} ms of the server's processor a second, and ${runner.broker.toFixed(2)} ms of the broker's`,
      `${FLEET} runners, by that: ${((runner.serve * FLEET) / 1_000).toFixed(1)} processors of servers and ${((runner.broker * FLEET) / 1_000).toFixed(1)} of brokers while they do nothing, and ${(1_000 / stage.serve).toFixed(0)} stages a second for each further processor`,
      `load of the machine: ${loadavg()[0]?.toFixed(1)} on ${availableParallelism()} processors, which the runners share`,
    ];
  } finally {
    await Promise.all(children.map(end));
    await server.stop();
    folder.remove();
  }
}

async function tokenOf(server: RunningServer): Promise<string> {
  const made = await server.graphql<{ createRunnerToken: { token: string } }>(
    'mutation { createRunnerToken(labels: ["fleet"]) { token } }',
  );
  return made.data.createRunnerToken.token;
}

/** Stages that no machine but one of the fleet takes, and none of a run needs what another has left. */
async function triggerBurst(server: RunningServer, name: string): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let run = 0; run < RUNS; run++) {
    const stages = Array.from(
      { length: STAGES_A_RUN },
      (_, stage) => `  s${stage}: {run: "true", runs_on: fleet, workspace: fresh}`,
    );
    ids.push(await trigger(server, [`pipeline: {name: ${name}-${run}}`, 'stages:', ...stages].join('\n')));
  }
  return ids;
}

interface TakenUp {
  /** Milliseconds since the beginning. */
  readonly middle: number;
  readonly last: number;
}

/** When the stages of these runs were granted. */
async function takenUp(server: RunningServer, ids: readonly string[], from: number): Promise<TakenUp> {
  const started: number[] = [];
  for (const id of ids) {
    const run = await until(
      'the run has ended',
      async () => {
        const answer = await server.graphql<{
          run: { status: string; stages: { startedAt: string | null; reason: string | null }[] };
        }>('query ($id: String!) { run(id: $id) { status stages { startedAt reason } } }', { id });
        return ['SUCCESS', 'FAILED', 'CANCELLED'].includes(answer.data.run.status) && answer.data.run;
      },
      DONE_MS_MAX,
    );
    if (run.status !== 'SUCCESS')
      throw new Error(
        `the run ${id} ended ${run.status}: ${[...new Set(run.stages.map(({ reason }) => reason))].join(', ')}\n${server.output()}`,
      );
    for (const { startedAt } of run.stages) started.push(Date.parse(startedAt ?? '') - from);
  }
  started.sort((a, b) => a - b);
  return { middle: median(started), last: started.at(-1) ?? Number.NaN };
}

interface Cost {
  /** Milliseconds of a processor. */
  readonly serve: number;
  readonly broker: number;
}

/** In a second in which nothing is asked of it. */
async function idleCost(server: RunningServer): Promise<Cost> {
  const before = costOf(server);
  await rest(IDLE_MS);
  return scale(minus(costOf(server), before), 1_000 / IDLE_MS);
}

function costOf(server: RunningServer): Cost {
  const broker = descendantsOf(server.pid).find(({ command }) => command.includes('nats-server'));
  if (broker === undefined) throw new Error('the server has no broker');
  return { serve: processorTimes(server.pid).own, broker: processorTimes(broker.pid).own };
}

function minus(a: Cost, b: Cost): Cost {
  return { serve: a.serve - b.serve, broker: a.broker - b.broker };
}

function scale({ serve, broker }: Cost, by: number): Cost {
  return { serve: serve * by, broker: broker * by };
}

function residentBytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? Number.NaN) * 1024;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

function timesOf({ middle, last }: TakenUp): string {
  return `half of them are taken up within ${seconds(middle)}, all within ${seconds(last)}`;
}

function seconds(milliseconds: number): string {
  return `${(milliseconds / 1_000).toFixed(1)} s`;
}
