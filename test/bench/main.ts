/**
 * `npm run bench [-- name …]`: every benchmark, or those named. Each measures its limit or its peer in the same run and
 * prints the ratio, for absolute figures move with whatever else the machine does. Bounded in time; stops by itself.
 */
const benches: Readonly<Record<string, () => Promise<string[]>>> = {
  pipeline: async () => (await import('./pipeline.ts')).benchPipeline(),
  bus: async () => (await import('./bus.ts')).benchBus(),
  store: async () => (await import('./store.ts')).benchStore(),
  executor: async () => (await import('./executor.ts')).benchExecutor(),
  executors: async () => (await import('./executors.ts')).benchExecutors(),
  containers: async () => (await import('./containers.ts')).benchContainers(),
  local: async () => (await import('./local-run.ts')).benchLocalRun(),
  runs: async () => (await import('./runs.ts')).benchRuns(),
  figures: async () => (await import('./figures.ts')).benchFigures(),
  traces: async () => (await import('./traces.ts')).benchTraces(),
  pipelines: async () => (await import('./pipelines.ts')).benchPipelines(),
  cluster: async () => (await import('./cluster.ts')).benchCluster(),
  fleet: async () => (await import('./fleet.ts')).benchFleet(),
  sizing: async () => (await import('./sizing.ts')).benchSizing(),
  'owner-loop': async () => (await import('./owner-loop.ts')).benchOwnerLoop(),
  trigger: async () => (await import('./trigger.ts')).benchTrigger(),
  logs: async () => (await import('./logs.ts')).benchLogs(),
  masking: async () => (await import('./masking.ts')).benchMasking(),
  memory: async () => (await import('./memory.ts')).benchMemory(),
  resident: async () => (await import('./resident.ts')).benchResident(),
  schedules: async () => (await import('./schedules.ts')).benchSchedules(),
  gateway: async () => (await import('./gateway.ts')).benchGateway(),
  reads: async () => (await import('./reads.ts')).benchReads(),
  webhook: async () => (await import('./webhook.ts')).benchWebhook(),
  backlog: async () => (await import('./webhook.ts')).benchBacklog(),
  pushes: async () => (await import('./pushes.ts')).benchPushes(),
  checkout: async () => (await import('./pushes.ts')).benchCheckout(),
  registry: async () => (await import('./registry.ts')).benchRegistry(),
  artifacts: async () => (await import('./artifacts.ts')).benchArtifacts(),
  caches: async () => (await import('./caches.ts')).benchCaches(),
  dashboard: async () => (await import('./dashboard.ts')).benchDashboard(),
};

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !(name in benches));
if (unknown.length > 0) {
  console.error(`no benchmark is called ${unknown.join(', ')}; there are: ${Object.keys(benches).join(', ')}`);
  process.exit(2);
}
// With `exit` go the servers and folders that a benchmark has made.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1));
for (const [name, bench] of Object.entries(benches)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  console.log(`\n${name}`);
  for (const line of await bench()) console.log(`  ${line}`);
}
process.exit(0);
