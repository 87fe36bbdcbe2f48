import type { Job } from '@penstock/bus';

/** A stage that does nothing, as a scheduler sends it. */
export const plainJob: Job = {
  runId: 'run-1',
  stage: 'build',
  attempt: 1,
  session: 's',
  credit: 1,
  partition: 0,
  epoch: 1,
  key: 'tenant',
  pipelineName: 'p',
  origin: { kind: 'api' },
  workspace: 'shared',
  commands: [{ script: 'true', bindings: {} }],
  env: {},
  outputs: [],
  timeoutMs: 60_000,
  logBytesMax: 1_000,
  repeated: false,
};
