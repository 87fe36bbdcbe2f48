/** `penstock runner`: this machine as a runner of a server elsewhere, by a token (P37). */
import { hostname } from 'node:os';
import { join } from 'node:path';
import { backoffMs, pauseOrAbort } from '@penstock/async';
import { connectBus, inboxPrefixOf, runnerUserName } from '@penstock/bus';
import { ConfigurationError, readConfiguration, unknownVariables } from '@penstock/config';
import type { AttachAnswer } from '@penstock/identity';
import { createLogger, type Logger } from '@penstock/telemetry';
import { Metrics } from '@penstock/telemetry/metrics';
import { openTracer, tracesProblems, tracesSecrets } from '@penstock/telemetry/traces';
import { MACHINE_KEYS, machineRunner } from './machine-runner.ts';
import type { Runner } from './runner-options.ts';
import { NotIsolated, RunnerFolderInUse } from './workspace/errors.ts';
import { Attachment, AttachRefused } from './fleet/attachment.ts';
import { hasServed, idleFor } from './idle.ts';
import { runnerSeed } from './fleet/runner-key.ts';

export interface FleetRunnerOptions {
  /** Without a slash at its end. */
  readonly server: string;
  readonly token: string;
  /** Is there, and locked. */
  readonly dataDir: string;
  /** It ends when it has had nothing to do for so long; absent: never. */
  readonly idleMs?: number | undefined;
  /** It serves one run, and ends with it. Default: false. */
  readonly once?: boolean | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Aborted: no further stage but those of open runs that have their folder here, and these and the running ones have `SERVICE_DRAIN`. */
  readonly stopping: AbortSignal;
  /** For people. */
  print(line: string): void;
}

export type FleetRunnerEnd =
  | { readonly kind: 'stopped' }
  | { readonly kind: 'idle' }
  /** Its one run has ended. */
  | { readonly kind: 'served' }
  /** The server, or this machine, will not do. */
  | { readonly kind: 'refused'; readonly why: string };

const KEYS = [...MACHINE_KEYS, 'logLevel'] as const;
const ATTACH_RETRY = { firstMs: 500, maxMs: 10_000 };
const BEGIN_RETRY_MS = 1_000;
const CONNECT_MS_MAX = 60_000;

/** Throws ConfigurationError. */
export async function runFleetRunner(options: FleetRunnerOptions): Promise<FleetRunnerEnd> {
  const { env, stopping, token, server, dataDir, print } = options;
  const settings = readConfiguration(KEYS, { env });
  const problems = tracesProblems(env);
  if (problems.length > 0) throw new ConfigurationError(problems);
  const log = createLogger({ service: 'runner', level: settings.logLevel, secrets: [token, ...tracesSecrets(env)] });
  for (const { name, suggestion } of unknownVariables(env))
    log.warn({ name, suggestion }, 'a variable is not known here');
  const seed = runnerSeed(join(dataDir, 'runner.key'));
  const attachment = new Attachment({ server, token, seed, name: hostname(), log });
  try {
    const attached = await attachWhenPossible(attachment, log, stopping);
    if (attached === null) return { kind: 'stopped' };
    return await serveAs(attached);
  } catch (error) {
    if (error instanceof AttachRefused || error instanceof NotIsolated || error instanceof RunnerFolderInUse)
      return { kind: 'refused', why: error.message };
    throw error;
  } finally {
    attachment.close();
  }

  async function serveAs({ runner: runnerId, labels, tenant }: AttachAnswer): Promise<FleetRunnerEnd> {
    const bus = await connectBus({
      servers: server,
      name: 'runner',
      inboxPrefix: inboxPrefixOf(runnerUserName(runnerId)),
      seed,
      openSocket: () => attachment.openSocket(),
      connectTimeoutMs: CONNECT_MS_MAX,
      log,
    });
    void attachment.keepUp();
    const runnerLabels = settings.runnerLabels.length > 0 ? settings.runnerLabels : labels;
    const beyond = runnerLabels.filter((label) => !labels.includes(label));
    if (beyond.length > 0) log.warn({ labels: beyond }, 'the token does not name these labels: they do not count');
    const meter = new Metrics({ process: false });
    const tracer = await openTracer(env, { service: 'runner', log, meter });
    const machine = await machineRunner({
      settings: { ...settings, runnerLabels },
      bus,
      log,
      meter,
      tracer,
      dataDir,
      runnerId,
      hearsMembers: true,
      tenant,
      once: options.once,
    });
    try {
      const runner = await beginWhenPossible(machine.begin, attachment, log, stopping);
      if (runner === null) return { kind: 'stopped' };
      print(`This machine is the runner ${runnerId} of ${server}`);
      print(`  labels       ${runnerLabels.join(', ') || 'those of the machine alone'}`);
      if (tenant !== undefined) print(`  runs of      ${tenant} alone`);
      print(`  data folder  ${dataDir}`);
      return await untilOver(runner);
    } finally {
      await machine.mirrors.close();
      await bus.close();
      await tracer?.close();
    }
  }

  async function untilOver(runner: Runner): Promise<FleetRunnerEnd> {
    const over = new AbortController();
    const { idleMs } = options;
    const end = await Promise.race([
      aborted(stopping).then(() => ({ kind: 'stopped' as const })),
      attachment.refused.then(({ message: why }) => ({ kind: 'refused' as const, why })),
      ...(options.once === true ? [hasServed(runner, over.signal).then(() => ({ kind: 'served' as const }))] : []),
      ...(idleMs === undefined ? [] : [idleFor(runner, idleMs, over.signal).then(() => ({ kind: 'idle' as const }))]),
    ]);
    over.abort();
    if (end.kind === 'refused') await runner.close();
    else {
      // What was to be served has been, or nothing was to be done: a folder of another run that is here is nobody's to wait for.
      const finishesRuns = end.kind === 'stopped';
      const [running, runs] = [runner.running, finishesRuns ? runner.heldRuns : 0];
      if (running + runs > 0)
        print(
          `Waiting for ${running} running stages and ${runs} open runs that have their folder here; a second signal ends them.`,
        );
      await runner.drain(settings.drain, { finishesRuns });
    }
    return end;
  }
}

/** Null: told to stop. Throws `AttachRefused`. */
async function attachWhenPossible(
  attachment: Attachment,
  log: Logger,
  stopping: AbortSignal,
): Promise<AttachAnswer | null> {
  for (let tries = 1; !stopping.aborted; tries += 1) {
    try {
      return await attachment.attach();
    } catch (error) {
      if (error instanceof AttachRefused) throw error;
      log.warn({ err: error }, 'this machine could not be attached yet; tried again');
      await pauseOrAbort(backoffMs(tries, ATTACH_RETRY), stopping);
    }
  }
  return null;
}

/** Null: told to stop. */
async function beginWhenPossible(
  begin: () => Promise<Runner>,
  attachment: Attachment,
  log: Logger,
  stopping: AbortSignal,
): Promise<Runner | null> {
  const refused = attachment.refused.then((error) => {
    throw error;
  });
  refused.catch(() => {});
  while (!stopping.aborted) {
    try {
      return await Promise.race([begin(), refused]);
    } catch (error) {
      if (error instanceof NotIsolated || error instanceof RunnerFolderInUse || error instanceof AttachRefused)
        throw error;
      log.warn({ err: error }, 'no session could begin yet; tried again');
      await pauseOrAbort(BEGIN_RETRY_MS, stopping);
    }
  }
  return null;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
