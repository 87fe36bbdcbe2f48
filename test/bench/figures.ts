/**
 * What counting costs: three-stage runs by a runner that does nothing, through one scheduler that counts for Prometheus and counts
 * nothing by turns, so that what else the machine does meets both; and what of a run's processor time its figures take by themselves.
 */
import { planOf, type RunEvent } from '@penstock/run';
import { Definitions, LiveRun, RunMeter, type CommittedPart } from '@penstock/scheduler/testing';
import { Metrics, noMeter, type Meter } from '@penstock/telemetry/metrics';
import {
  driveRuns,
  makeDependencies,
  ratePerSecond,
  startNoOpRunner,
  THREE_STAGES,
  type RunDriver,
} from './dependencies.ts';

const IN_FLIGHT = 50;
const WINDOWS = 8;
const WINDOW_MS = 1_000;
const COUNTED_RUNS = 20_000;
/** Of a run's processor time: counting may cost no more. */
const COST_MAX = 0.03;

export async function benchFigures(): Promise<string[]> {
  const meter = switched(new Metrics({ process: false }));
  const around = await makeDependencies({ meter });
  try {
    const runner = await startNoOpRunner(around.bus, [around.scheduler.member], IN_FLIGHT);
    const driver = driveRuns(around.client);
    await window(driver, 2_000);
    const [counting, silent]: [Window[], Window[]] = [[], []];
    for (let index = 0; index < WINDOWS; index++) {
      // Neither is always the later one.
      for (const isOn of index % 2 === 0 ? [true, false] : [false, true]) {
        meter.isOn = isOn;
        (isOn ? counting : silent).push(await window(driver, WINDOW_MS));
      }
    }
    runner.stop();
    const cpuUs = median(counting.map((each) => each.cpuMs)) * 1_000;
    const ownUs = countedUs();
    const share = ownUs / cpuUs;
    return [
      `three stages of no-op: ${rateOf(counting)} runs/s with figures, ${rateOf(silent)} without`,
      `three stages of no-op: ${ownUs.toFixed(1)} us of the ${cpuUs.toFixed(0)} us of processor time a run takes are its figures: ${(share * 100).toFixed(2)} % (${share <= COST_MAX ? 'within' : 'ABOVE'} ${COST_MAX * 100} %)`,
    ];
  } finally {
    await around.close();
  }
}

export interface Window {
  readonly runsPerSecond: number;
  readonly cpuMs: number;
}

export async function window(driver: RunDriver, milliseconds: number): Promise<Window> {
  const before = process.cpuUsage();
  const from = performance.now();
  const runsPerSecond = await ratePerSecond(() => driver.runOne(), IN_FLIGHT, milliseconds);
  const runs = (runsPerSecond * (performance.now() - from)) / 1_000;
  const { user, system } = process.cpuUsage(before);
  return { runsPerSecond, cpuMs: (user + system) / 1_000 / runs };
}

function switched(inner: Meter): Meter & { isOn: boolean } {
  const meter: Meter & { isOn: boolean } = {
    isOn: true,
    add: (...figure) => (meter.isOn ? inner : noMeter).add(...figure),
    observe: (...figure) => (meter.isOn ? inner : noMeter).observe(...figure),
    gauge: (...figure) => inner.gauge(...figure),
  };
  return meter;
}

/** Of one run that has ended, all of its events at once. */
function countedUs(): number {
  const part = endedRun();
  const meter = new RunMeter(new Metrics({ process: false }));
  for (let index = 0; index < COUNTED_RUNS; index++) meter.committed(part);
  const before = process.threadCpuUsage();
  for (let index = 0; index < COUNTED_RUNS; index++) meter.committed(part);
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / COUNTED_RUNS;
}

/** Three stages that have succeeded. */
export function endedRun(id = 'bench'): CommittedPart {
  const { definition } = new Definitions().find(THREE_STAGES);
  const at = 1_800_000_000_000;
  const events: RunEvent[] = [
    {
      type: 'run_created',
      at,
      tenant: 't',
      key: 't',
      pipelineName: 'bench',
      yaml: '',
      priority: 0,
      origin: { kind: 'api' },
    },
  ];
  for (const { definition: stage } of planOf(definition).stages)
    events.push(
      { type: 'stages_queued', at, stages: [stage.name] },
      { type: 'stage_started', at, stage: stage.name, attempt: 1, runner: 'r', session: 's', credit: 1 },
      { type: 'stage_completed', at, stage: stage.name, attempt: 1, status: 'SUCCESS' },
    );
  events.push({ type: 'run_completed', at, status: 'SUCCESS' });
  const run = LiveRun.restore(id, definition, { events, sequence: 1 }, { queueTimeoutMs: 1 });
  return { run, from: 1, to: events.length };
}

export function rateOf(windows: readonly Window[]): string {
  return median(windows.map(({ runsPerSecond }) => runsPerSecond)).toFixed(0);
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return ((sorted[middle] ?? 0) + (sorted[sorted.length - 1 - middle] ?? 0)) / 2;
}
