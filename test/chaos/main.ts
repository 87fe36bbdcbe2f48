/**
 * `npm run chaos -- [--schedule mixed] [--seed N] [--seeds COUNT] [--seconds S] [--faults a,b,c] [--store sqlite|mongodb]
 * [--brokers 1|3] [--clocks] [--disks] [--lease-secs 15] [--list]`. Each seed has a cluster of its own. Ends with 1 at the first seed with a violation, whose
 * folder, with the logs of all services, is kept.
 */
import { appendFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { startCluster, type Cluster, type ClusterOptions } from '../cluster/cluster.ts';
import { CHAOS_CLUSTER } from './chaos-cluster.ts';
import { FAULT_KINDS, type FaultKind } from './fault-kinds.ts';
import { processesOfFolder } from '../support/orphans.ts';
import { reportLines } from './report.ts';
import { runChaos, type ChaosReport } from './run-chaos.ts';
import { schedules } from './schedules.ts';

const text = { type: 'string' } as const;
const { values } = parseArgs({
  options: {
    schedule: { ...text, default: 'mixed' },
    seed: text,
    seeds: { ...text, default: '1' },
    seconds: text,
    faults: text,
    store: text,
    brokers: text,
    clocks: { type: 'boolean' },
    disks: { type: 'boolean' },
    'lease-secs': { ...text, default: '15' },
    json: text,
    list: { type: 'boolean', default: false },
  },
});
const say = (line: string): boolean => process.stdout.write(`${line}\n`);

if (values.list) {
  for (const [name, { about, seconds }] of Object.entries(schedules)) say(`${name.padEnd(16)} ${seconds} s: ${about}`);
  say(`faults: ${FAULT_KINDS.join(', ')}`);
  process.exit(0);
}
const schedule = schedules[values.schedule];
if (schedule === undefined)
  throw new RangeError(`there is no schedule '${values.schedule}'; there are ${Object.keys(schedules).join(', ')}`);
const { store, brokers } = values;
if (store !== undefined && store !== 'sqlite' && store !== 'mongodb')
  throw new RangeError(`--store is sqlite or mongodb, not ${store}`);
if (brokers !== undefined && brokers !== '1' && brokers !== '3')
  throw new RangeError(`--brokers is 1 or 3, not ${brokers}`);
const shape: ClusterOptions = {
  ...schedule.cluster,
  ...(store === undefined ? {} : { store }),
  ...(brokers === undefined ? {} : { brokers: brokers === '3' ? 3 : 1 }),
  ...(values.clocks === undefined ? {} : { clocks: values.clocks }),
  ...(values.disks === undefined ? {} : { disks: values.disks }),
};
const kinds = (values.faults ?? '')
  .split(',')
  .filter((kind) => kind !== '')
  .map(faultKind);
const seconds = Number(values.seconds ?? schedule.seconds);
const leaseSecs = Number(values['lease-secs']);
const first = Number(values.seed ?? 1 + Math.floor(Math.random() * 1_000_000));

let running: Cluster | undefined;
let interrupted = false;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    // A second one does not wait: the services die with this process.
    if (interrupted) process.exit(130);
    interrupted = true;
    say('interrupted; the cluster is being stopped');
    void (running?.stop() ?? Promise.resolve()).finally(() => process.exit(130));
  });
}

for (let seed = first; seed < first + Number(values.seeds); seed++) {
  say(`== ${values.schedule}, seed ${seed}, ${seconds} s, ${describeShape()}`);
  const failed = await one(seed);
  if (!failed) continue;
  const more = [
    ...(kinds.length > 0 ? [`--faults ${kinds.join(',')}`] : []),
    ...(store === undefined ? [] : [`--store ${store}`]),
    ...(brokers === undefined ? [] : [`--brokers ${brokers}`]),
    ...(values.clocks === true ? ['--clocks'] : []),
    ...(values.disks === true ? ['--disks'] : []),
  ];
  say(
    `FAILED. Replay it: ${['npm run chaos --', `--schedule ${values.schedule}`, `--seed ${seed}`, `--seconds ${seconds}`, `--lease-secs ${leaseSecs}`, ...more].join(' ')}`,
  );
  process.exit(1);
}
process.exit(0);

async function one(seed: number): Promise<boolean> {
  if (schedule === undefined) return true;
  const cluster = await startCluster({ ...CHAOS_CLUSTER, runnerLeaseSecs: leaseSecs, ...shape });
  running = cluster;
  let report: ChaosReport | undefined;
  let left: string[] = [];
  try {
    report = await runChaos({ cluster, schedule, seed, seconds, kinds, runnerLeaseSecs: leaseSecs, say });
    for (const line of reportLines(report)) say(line);
  } finally {
    const keepFolder = report === undefined || report.violations.length > 0;
    running = undefined;
    await cluster.stop({ keepFolder });
    left = processesOfFolder(cluster.folder);
    if (keepFolder) say(`the logs are in ${cluster.folder}`);
  }
  for (const line of left) say(`  left behind after the stop: ${line}`);
  if (values.json !== undefined)
    appendFileSync(
      values.json,
      `${JSON.stringify({ schedule: values.schedule, seed, seconds, ...report, failures: [...report.failures], left })}\n`,
    );
  return report.violations.length > 0 || left.length > 0;
}

function describeShape(): string {
  const more = [...(shape.clocks === true ? ['clocks'] : []), ...(shape.disks === true ? ['disks'] : [])];
  return [`store ${shape.store ?? 'sqlite'}`, `${shape.brokers ?? 1} broker(s)`, ...more].join(', ');
}

function faultKind(name: string): FaultKind {
  const kind = FAULT_KINDS.find((one) => one === name);
  if (kind === undefined) throw new RangeError(`there is no fault '${name}'; there are ${FAULT_KINDS.join(', ')}`);
  return kind;
}
