/**
 * The life of one service as a process of its own, the same for all of them: configuration checked before anything else,
 * the internal port open from the first moment, a broker waited for however long it takes (services start in any order),
 * a signal that drains and a second one that does not wait.
 */
import { setTimeout as delay } from 'node:timers/promises';
import {
  BrokerAway,
  brokerAddress,
  clockDifference,
  connectBus,
  inboxPrefixOf,
  type Bus,
  type ClockedService,
} from '@penstock/bus';
import {
  ConfigurationError,
  readConfiguration,
  unknownVariables,
  type Configuration,
  type VariableKey,
} from '@penstock/config';
import { createLogger, type Logger } from '@penstock/telemetry';
import { Metrics, metricsText, type Meter } from '@penstock/telemetry/metrics';
import { openTracer, tracesProblems, tracesSecrets, type Tracer } from '@penstock/telemetry/traces';
import { pauseOrAbort } from '@penstock/async';
import { ClockWatch } from './clock-watch.ts';
import { giveBackWhenIdle } from './idle-memory.ts';

const COMMON_KEYS = ['logLevel', 'internalListen'] as const;
type CommonKey = (typeof COMMON_KEYS)[number];

interface ServiceContext<K extends VariableKey> extends PlainContext<K | 'natsUrl'> {
  readonly bus: Bus;
}

interface PlainContext<K extends VariableKey> {
  readonly settings: Configuration<K | CommonKey>;
  readonly log: Logger;
  /** Read at the internal port. */
  readonly meter: Meter;
  /** Undefined: traces are off, or this service sends none. */
  readonly tracer: Tracer | undefined;
  /**
   * Tries until it succeeds, for what another service has to set up first; `/ready` says what is waited for and why.
   * What `isPassing` denies is thrown. Throws `ToldToStop` when the process is told to stop meanwhile.
   */
  untilDone<T>(what: string, attempt: () => Promise<T>, isPassing?: (error: unknown) => boolean): Promise<T>;
}

/** The start was given up, since the process was told to stop. */
class ToldToStop extends Error {
  override readonly name = 'ToldToStop';
}

interface RunningService {
  /** Rejects, with the reason as its message, while the service cannot do its work. */
  ready(): Promise<void>;
  /** What ends the service, in this order. A step that fails does not keep the later ones from being done. */
  readonly drain: readonly DrainStep[];
}

/** Hands over, finishes or closes one part, within bounds of its own. */
export type DrainStep = readonly [part: string, end: () => Promise<void> | void];

export interface ServiceDefinition<K extends VariableKey> extends Omit<PlainDefinition<K>, 'name' | 'check' | 'start'> {
  readonly name: ClockedService;
  /** Throws ConfigurationError for what only this service can know to be wrong. */
  check?(settings: Configuration<K | CommonKey | 'natsUrl'>): void;
  start(context: ServiceContext<K>): Promise<RunningService>;
}

/** Of a service that needs no broker. */
export interface PlainDefinition<K extends VariableKey> {
  readonly name: string;
  /** Which variables it reads, beside the common ones. */
  readonly keys: readonly K[];
  /**
   * Clients reach it through an ingress: told to stop, it says so at `/ready` for a while before it drains, so that whoever
   * spreads the load has noticed.
   */
  readonly isBehindIngress?: true | undefined;
  /** It has spans to send. */
  readonly sendsTraces?: true | undefined;
  /** Throws ConfigurationError for what only this service can know to be wrong. */
  check?(settings: Configuration<K | CommonKey>): void;
  start(context: PlainContext<K>): Promise<RunningService>;
}

const RETRY_MS = 1_000;
/**
 * Between the first `/ready` that says no and the closed port, or connections that the kernel has already taken would be
 * broken off. Ingresses look every second or so at most.
 */
const LEAVING_MS = 1_500;
const EXIT_FAILURE = 1;
const EXIT_USAGE = 2;

/** Resolves with the exit code, when the service has stopped. */
export function runService<K extends VariableKey>(
  definition: ServiceDefinition<K>,
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  const { name } = definition;
  return runServiceWithoutBroker<K | 'natsUrl'>(
    {
      ...definition,
      keys: ['natsUrl', ...definition.keys],
      check(settings) {
        throwAllOf([() => checkAddresses(definition, settings), () => definition.check?.(settings)]);
      },
      async start(context) {
        const bus = await connectWhenPossible(name, context);
        const clock = new ClockWatch({ ask: () => clockDifference(bus, name), log: context.log, meter: context.meter });
        clock.start();
        const service = await definition.start({ ...context, bus });
        return {
          ready: async () => {
            if (!bus.connected) throw new Error('the broker is away');
            await service.ready();
          },
          drain: [...service.drain, ['clock', () => clock.stop()], ['bus', () => bus.close()]],
        };
      },
    },
    env,
  );
}

/** Of one that needs neither broker nor database. Resolves with the exit code, when the service has stopped. */
export async function runServiceWithoutBroker<K extends VariableKey>(
  definition: PlainDefinition<K>,
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  let settings: Configuration<K | CommonKey>;
  try {
    settings = readSettings(definition, env);
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    process.stderr.write(`penstock service ${definition.name}: ${error.message}\n`);
    return EXIT_USAGE;
  }
  const secrets = passwordsOf(settings);
  const log = createLogger({
    service: definition.name,
    level: settings.logLevel,
    secrets: [...secrets, ...tracesSecrets(env)],
  });
  for (const { name, suggestion } of unknownVariables(env))
    log.warn({ name, suggestion }, 'a variable is not known here');
  const stopping = stopSignal();
  let service: RunningService | undefined;
  const startUp = new StartUp(log, stopping);
  const metrics = new Metrics({ process: true });
  const tracer =
    definition.sendsTraces === true
      ? await openTracer(env, { service: definition.name, log, meter: metrics })
      : undefined;
  // `serve` loads this file in the engine's thread, which has no use for what answers HTTP.
  const { startInternalServer } = await import('./internal-server.ts');
  const internal = await startInternalServer({
    listen: settings.internalListen,
    ready: async () => {
      if (stopping.aborted) throw new Error('stopping');
      if (service === undefined) throw new Error(startUp.waitingFor);
      await service.ready();
    },
    metrics: async (accept) => await metricsText([await metrics.snapshot()], accept),
  });
  log.info({ port: internal.port }, 'the internal port is open');
  giveBackWhenIdle();
  try {
    service = await definition.start({
      ...{ settings, log, tracer },
      meter: metrics,
      untilDone: (what, attempt, isPassing) => startUp.untilDone(what, attempt, isPassing),
    });
    log.info({}, 'started');
    await aborted(stopping);
    log.info({}, 'draining');
    if (definition.isBehindIngress === true) await delay(LEAVING_MS);
    return (await drained(service.drain, log)) ? 0 : EXIT_FAILURE;
  } catch (error) {
    if (error instanceof ToldToStop) return 0;
    log.fatal({ err: error }, 'the service cannot go on');
    return EXIT_FAILURE;
  } finally {
    await tracer?.close();
    await internal.close();
  }
}

function readSettings<K extends VariableKey>(
  definition: PlainDefinition<K>,
  env: Readonly<Record<string, string | undefined>>,
): Configuration<K | CommonKey> {
  const settings = readConfiguration([...COMMON_KEYS, ...definition.keys], { env });
  const problems = definition.sendsTraces === true ? tracesProblems(env) : [];
  if (problems.length > 0) throw new ConfigurationError(problems);
  definition.check?.(settings);
  return settings;
}

function checkAddresses<K extends VariableKey>(
  { keys }: Pick<ServiceDefinition<K>, 'keys'>,
  settings: Configuration<'natsUrl'>,
): void {
  const problems: string[] = [];
  if (settings.natsUrl === undefined)
    problems.push(
      'SERVICE_NATS_URL is missing; a service on its own needs the address of the broker that the others use',
    );
  if (keys.some((key) => key === 'storeUrl') && (settings as { storeUrl?: unknown }).storeUrl === undefined)
    problems.push(
      'SERVICE_STORE_URL is missing; a service on its own needs the address of the database that the others use',
    );
  if (problems.length > 0) throw new ConfigurationError(problems);
}

/** What several checks find, in one error. */
function throwAllOf(checks: readonly (() => void)[]): void {
  const problems = checks.flatMap((check) => {
    try {
      check();
      return [];
    } catch (error) {
      if (error instanceof ConfigurationError) return error.problems;
      throw error;
    }
  });
  if (problems.length > 0) throw new ConfigurationError(problems);
}

/** Of the broker's addresses, where there are any. */
function passwordsOf(settings: object): string[] {
  const { natsUrl } = settings as Partial<Configuration<'natsUrl'>>;
  return natsUrl?.flatMap((url) => new URL(url).password || []) ?? [];
}

/** False: a part could not be ended as it should have been; the log says which. */
async function drained(steps: readonly DrainStep[], log: Logger): Promise<boolean> {
  let isClean = true;
  for (const [part, end] of steps) {
    try {
      await end();
    } catch (error) {
      isClean = false;
      log.error({ err: error, part }, 'a part of the service could not be ended cleanly');
    }
  }
  return isClean;
}

async function connectWhenPossible(
  name: string,
  { settings, log, untilDone }: Pick<PlainContext<'natsUrl'>, 'settings' | 'log' | 'untilDone'>,
): Promise<Bus> {
  const address = brokerAddress(settings.natsUrl ?? []);
  // A user of the generated broker configuration hears answers under its own name only (docs/adr/0009-broker-permissions.md).
  const inboxPrefix = address.user === undefined ? undefined : inboxPrefixOf(address.user);
  return await untilDone(
    'connecting to the broker',
    () => connectBus({ ...address, name, log, inboxPrefix }),
    (error) => error instanceof BrokerAway,
  );
}

/** What a start waits for; whoever asks `/ready` meanwhile is told. */
class StartUp {
  readonly #log: Logger;
  readonly #stopping: AbortSignal;
  readonly #stopped: Promise<never>;
  #waitingFor = 'starting';

  constructor(log: Logger, stopping: AbortSignal) {
    this.#log = log;
    this.#stopping = stopping;
    this.#stopped = aborted(stopping).then(() => {
      throw new ToldToStop();
    });
    this.#stopped.catch(() => {});
  }

  get waitingFor(): string {
    return this.#waitingFor;
  }

  async untilDone<T>(
    what: string,
    attempt: () => Promise<T>,
    isPassing: (error: unknown) => boolean = () => true,
  ): Promise<T> {
    for (;;) {
      if (this.#stopping.aborted) throw new ToldToStop();
      try {
        return await Promise.race([attempt(), this.#stopped]);
      } catch (error) {
        if (error instanceof ToldToStop || !isPassing(error)) throw error;
        this.#waitingFor = `${what}: ${error instanceof Error ? error.message : String(error)}`;
        this.#log.warn({ err: error }, `${what}: not yet possible; trying again`);
        await pauseOrAbort(RETRY_MS, this.#stopping);
      }
    }
  }
}

function stopSignal(): AbortSignal {
  const controller = new AbortController();
  const handle = (): void => {
    if (controller.signal.aborted) process.exit(130);
    controller.abort(new Error('told to stop'));
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, handle);
  return controller.signal;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
