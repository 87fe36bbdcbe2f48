import type { Command, CommandContext, ParsedArguments } from '../command-line/command.ts';
import { EXIT, UsageError } from '../process/errors.ts';
import { letStagesIn } from '../process/file-modes.ts';
import { nearestWord } from '../command-line/nearest.ts';

type Start = (env: Readonly<Record<string, string | undefined>>) => Promise<number>;

/** Each is loaded only when it is the one that is started. */
const SERVICES: Readonly<Record<string, () => Promise<Start>>> = {
  gateway: async () => (await import('@penstock/gateway')).runGatewayService,
  auth: async () => (await import('@penstock/auth')).runAuthService,
  scheduler: async () => (await import('@penstock/scheduler')).runSchedulerService,
  runner: async () => (await import('@penstock/runner')).runRunnerService,
  registry: async () => (await import('@penstock/registry')).runRegistryService,
  'webhook-ingest': async () => (await import('@penstock/webhook-ingest')).runWebhookIngestService,
  scaler: async () => (await import('@penstock/scaler')).runScalerService,
};

export const serviceCommand: Command = {
  spec: {
    name: 'service',
    usage: `<${Object.keys(SERVICES).join('|')}>`,
    about:
      'Runs one service as a process of its own, against a broker and a database that the others use too. Any number of each can run, on any machine; they ' +
      'start in any order. SIGTERM drains: partitions are handed over, running stages and runs with their folder on a runner finish, clients of log streams are asked to come back elsewhere.',
    options: {},
    positionals: { min: 1, max: 1, missing: `name the service: ${Object.keys(SERVICES).join(', ')}` },
    environment: [
      ['SERVICE_NATS_URL', 'the broker, user and password in it (all but scaler)'],
      ['SERVICE_STORE_URL', 'the database (gateway, scheduler)'],
      ['SERVICE_INTERNAL_LISTEN', 'where /health and /ready are answered; default 127.0.0.1:9090'],
    ],
    examples: [
      ['penstock service scheduler', 'one more owner of partitions'],
      ['penstock service runner', 'the slots of this machine'],
      ['penstock service scaler', 'runners of a cluster by what waits for them'],
    ],
    exitCodes: [
      [EXIT.success, 'stopped by a signal, after it had drained'],
      [EXIT.failure, 'it could not go on'],
      [EXIT.usage, 'wrong usage or configuration'],
    ],
  },
  async run(args: ParsedArguments, { env }: CommandContext) {
    const [name = ''] = args.positionals;
    const load = Object.hasOwn(SERVICES, name) ? SERVICES[name] : undefined;
    if (load === undefined) {
      const close = nearestWord(name, Object.keys(SERVICES));
      throw new UsageError(
        `there is no service '${name}'; ${close === undefined ? `the services are ${Object.keys(SERVICES).join(', ')}` : `did you mean '${close}'?`}`,
        'service',
      );
    }
    if (name === 'runner') letStagesIn();
    const start = await load();
    return await start(env);
  },
};
