/** What a runner has in production: the broker, this machine's clocks and disk, and the executors that it finds. */
import { noMeter } from '@penstock/telemetry/metrics';
import { keptRequest, withRequest } from '@penstock/telemetry/request';
import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DirectWay } from '@penstock/artifacts';
import { machineTime } from '@penstock/async';
import { createLogWriter, endLease, hearMembers, RUNNER_LEASE_MS, watchLeases } from '@penstock/bus';
import { bootClockMs, type Guard } from '@penstock/executor';
import { InheritedFiles } from './artifacts/inherited-files.ts';
import { LeftInside } from './artifacts/left-inside.ts';
import { StageArtifacts } from './artifacts/stage-artifacts.ts';
import { StageReports } from './artifacts/stage-reports.ts';
import { storageByBus } from './artifacts/storage-line.ts';
import { StageCaches } from './caches/stage-caches.ts';
import { Attempt } from './attempt/attempt.ts';
import type { AttemptRecords } from './attempt/attempt-records.ts';
import { lentEnvironment } from './attempt/inherited-environment.ts';
import { helperRoom, idleHelpersMax } from './executors/idle-helpers.ts';
import { SessionExecutors } from './executors/session-executors.ts';
import { executorsOf, hasUsers } from './executors/executor-parts.ts';
import { ChunkStore } from './report/chunk-store.ts';
import { FreeRoom } from './report/free-room.ts';
import { ResultFile } from './report/result-file.ts';
import type { RunnerOptions } from './runner-options.ts';
import type { RunnerPorts } from './runner-ports.ts';
import { sessionPorts } from './session/session.ts';
import { SessionFile } from './session/session-file.ts';
import { Checkouts } from './workspace/checkouts.ts';
import { FoldersOnDisk } from './workspace/folders-on-disk.ts';
import { Packages } from './workspace/packages.ts';
import { StageUsers } from './workspace/stage-users.ts';

const SPOOL_BYTES_MAX = 512 * 1024 * 1024;

/** `own`: the runner's own folder. */
export function machinePorts(
  options: RunnerOptions,
  own: string,
  records: AttemptRecords,
): RunnerPorts<Guard, SessionExecutors> {
  const { bus, log, dataDir, leaseMs = RUNNER_LEASE_MS } = options;
  mkdirSync(own, { recursive: true, mode: 0o700 });
  const writer = createLogWriter(bus);
  const lent = lentEnvironment(process.env, options.stageEnv ?? [], (name, why) =>
    log.warn({ name, why }, 'a variable that SERVICE_STAGE_ENV names is given to no stage'),
  );
  const environment = { ...process.env };
  const room = new FreeRoom(dataDir, log, options.freeBytesMin);
  const folders = new FoldersOnDisk(join(dataDir, 'work'), options.slots + idleHelpersMax(helperRoom()));
  // A runner of a fleet is elsewhere: it has the server's address alone.
  const direct =
    options.hearsMembers === true
      ? undefined
      : new DirectWay((error) =>
          log.warn(
            { err: error },
            'those who keep files are not reached straight: their bytes go by the broker for a while',
          ),
        );
  const storage = options.storage ?? storageByBus(bus, options.runnerId, direct);
  const sources = {
    checkouts: new Checkouts({ folder: join(own, 'checkouts'), mirrors: options.mirrors, log }),
    packages: new Packages({ bus, folder: own, log }),
    inherited: new InheritedFiles({ storage, folder: join(own, 'unpacking'), log }),
  };
  const leftInside = new LeftInside(join(own, 'left-inside'), log);
  const artifacts = new StageArtifacts({ storage });
  const reports = new StageReports({ storage });
  const caches = new StageCaches({ storage, folder: join(own, 'caches'), log });
  let keysInUse: () => ReadonlySet<string> = () => new Set();
  const users =
    options.stageUids !== undefined && hasUsers(options)
      ? new StageUsers(options.stageUids, () => ({ keys: keysInUse(), uids: folders.owners() }))
      : undefined;
  return {
    bus,
    time: machineTime,
    guardNow: bootClockMs,
    newId: randomUUID,
    random: Math.random,
    session: sessionPorts(bus, leaseMs),
    watchLeases: (bucket, handler) =>
      options.hearsMembers === true ? hearMembers(bus, handler) : watchLeases(bus, bucket, handler),
    endLease: (bucket, key) => endLease(bus, bucket, key),
    results: new ResultFile(join(own, 'results')),
    records,
    sessions: new SessionFile(join(own, 'sessions')),
    openChunks: (pending) => {
      const chunks = new ChunkStore(
        { writer, folder: join(own, 'spool'), spoolBytesMax: options.spoolBytesMax ?? SPOOL_BYTES_MAX, log },
        pending.flatMap(({ chunks: kept }) => (kept === undefined ? [] : [kept])),
      );
      return {
        open: (runId, runner) => chunks.open(runId, runner),
        resend: (runId, runner, kept) => chunks.resend(runId, runner, kept),
        close: () => writer.close(),
      };
    },
    folders,
    hasRoom: () => room.hasRoom(),
    createExecutors: (guard) =>
      new SessionExecutors(
        executorsOf(options).map(({ source, parts }) => source.create(parts, guard)),
        options.untrustedIsolation ?? 'none',
      ),
    startAttempt: (job, executors, parts, keys) => {
      keysInUse = keys;
      const { executor, place } = executors.assign(job);
      // Undefined: it runs as the runner does.
      const userOf =
        users !== undefined && executor?.canChangeUser === true ? (key: string) => users.userOf(key) : undefined;
      const whole = {
        ...parts,
        executor,
        place,
        userOf,
        sources,
        artifacts,
        leftInside,
        reports,
        caches,
        log,
        meter: options.meter ?? noMeter,
        tracer: options.tracer,
        graceMs: options.graceMs,
        environment,
        lent,
        time: machineTime,
      };
      // All that is done for it, and asked for it, is for the request that its run came from.
      return withRequest(keptRequest(job.origin), () => new Attempt(job, whole));
    },
  };
}
