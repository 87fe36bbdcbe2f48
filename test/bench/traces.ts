/**
 * What traces cost a scheduler where every run has one: three-stage runs by a runner that does nothing, with and without spans by
 * turns, and what of a run's processor time its spans take by themselves, their encoding and sending included. The receiver is
 * another process that reads and answers.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as rest } from 'node:timers/promises';
import { RunTracer } from '@penstock/scheduler/testing';
import { silentLog } from '@penstock/telemetry/log';
import { noMeter } from '@penstock/telemetry/metrics';
import { openTracer, type Tracer } from '@penstock/telemetry/traces';
import { driveRuns, makeDependencies, startNoOpRunner } from './dependencies.ts';
import { endedRun, median, rateOf, window, type Window } from './figures.ts';

const IN_FLIGHT = 50;
const WINDOWS = 8;
const WINDOW_MS = 1_000;
const STAGES = ['a', 'b', 'c'];
const TRACED_RUNS = 1_000;
const ROUNDS = 10;
/** Waiting takes processor time too. */
const REST_MS = 20;
/** Of a run's processor time. */
const COST_MAX = 0.1;
const RECEIVER = `
  const server = require('node:http').createServer((request, response) => request.resume().on('end', () => response.end()));
  server.listen(0, '127.0.0.1', () => process.stdout.write(server.address().port + '\\n'));
`;

export async function benchTraces(): Promise<string[]> {
  const receiver = spawn(process.execPath, ['-e', RECEIVER], { stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    const [port] = (await once(receiver.stdout, 'data')) as [Buffer];
    process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] = `http://127.0.0.1:${port.toString().trim()}`;
    const counted = { sent: 0, lost: 0 };
    const tracer = await openTracer(process.env, {
      service: 'bench',
      log: silentLog,
      meter: {
        ...noMeter,
        add: (_name, labels, count = 1) => {
          counted['outcome' in labels && labels.outcome === 'sent' ? 'sent' : 'lost'] += count;
        },
      },
    });
    if (tracer === undefined) throw new Error('traces are off');
    try {
      const ownUs = await tracedUs(tracer, () => counted.sent + counted.lost);
      const { tracing, silent } = await windows(tracer);
      const cpuUs = median(silent.map((each) => each.cpuMs)) * 1_000;
      const share = ownUs / cpuUs;
      return [
        `three stages of no-op: ${rateOf(tracing)} runs/s with a trace each, ${rateOf(silent)} without`,
        `three stages of no-op: ${ownUs.toFixed(1)} us for the spans of a run beside the ${cpuUs.toFixed(0)} us of processor time it takes: ${(share * 100).toFixed(1)} % (${share <= COST_MAX ? 'within' : 'ABOVE'} ${COST_MAX * 100} %)`,
        `spans: ${counted.sent} sent, ${counted.lost} dropped`,
      ];
    } finally {
      await tracer.close();
    }
  } finally {
    receiver.kill('SIGKILL');
  }
}

async function windows(inner: Tracer): Promise<{ readonly tracing: Window[]; readonly silent: Window[] }> {
  const tracer = {
    ...inner,
    isOn: true,
    keeps: (id: string) => tracer.isOn && inner.keeps(id),
    send: inner.send.bind(inner),
  };
  const around = await makeDependencies({ tracer });
  try {
    const runner = await startNoOpRunner(around.bus, [around.scheduler.member], IN_FLIGHT);
    const driver = driveRuns(around.client);
    await window(driver, 2_000);
    const [tracing, silent]: [Window[], Window[]] = [[], []];
    for (let index = 0; index < WINDOWS; index++) {
      // Neither is always the later one.
      for (const isOn of index % 2 === 0 ? [true, false] : [false, true]) {
        tracer.isOn = isOn;
        (isOn ? tracing : silent).push(await window(driver, WINDOW_MS));
      }
    }
    runner.stop();
    return { tracing, silent };
  } finally {
    await around.close();
  }
}

/** Of one run, until its spans are with the receiver; the first rounds meet code that is still cold. */
async function tracedUs(tracer: Tracer, gone: () => number): Promise<number> {
  const traces = new RunTracer(tracer);
  const parts = Array.from({ length: TRACED_RUNS }, (_, index) => endedRun(`bench-${index}`));
  const spans = 1 + 2 * STAGES.length;
  const rounds: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const until = gone() + TRACED_RUNS * spans;
    const before = process.cpuUsage();
    for (const part of parts) {
      traces.committed(part);
      for (const stage of STAGES) traces.traceparent({ runId: part.run.state.id, stage, attempt: 1 });
    }
    while (gone() < until) await rest(REST_MS);
    const { user, system } = process.cpuUsage(before);
    rounds.push((user + system) / TRACED_RUNS);
  }
  return median(rounds.slice(ROUNDS / 2));
}
