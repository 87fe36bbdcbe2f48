/** `npm run cluster`: a cluster on this machine to try, until ^C. */
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { startCluster, type Cluster } from './cluster.ts';
import type { ServiceName } from './service-process.ts';

const USAGE = `usage: npm run cluster -- [options]
  --port N               of the ingress, default 8080
  --store sqlite|mongodb default sqlite
  --partitions N         default 16
  --schedulers N         default 3
  --runners N            default 3
  --gateways N           default 2
  --slots N              of each runner, default 4
Lines on standard input are verbs: kill|restart|freeze|resume <service> <n>, rolling, status. ^C stops everything.
`;
const EXIT_USAGE = 2;
const text = { type: 'string' } as const;
const values = readFlags();
const say = (line: string): boolean => process.stdout.write(`${line}\n`);

say('Starting a cluster on this machine ...');
const cluster = await startCluster({
  port: Number(values.port),
  store: values.store,
  partitions: Number(values.partitions),
  schedulers: Number(values.schedulers),
  runners: Number(values.runners),
  gateways: Number(values.gateways),
  slots: Number(values.slots),
});
const stopped = Promise.withResolvers<void>();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopped.resolve());
describe(cluster);
createInterface({ input: process.stdin }).on('line', (line) => {
  obey(cluster, line.trim()).catch((error: unknown) => say(error instanceof Error ? error.message : String(error)));
});
await stopped.promise;
say('Stopping ...');
await cluster.stop();
process.exit(0);

function describe({ url, apiKey, broker, store, folder, processes }: Cluster): void {
  say(`API      ${url}  (an ingress that routes by path)`);
  say(`key      ${apiKey}`);
  say(`broker   ${broker.url}  pid ${broker.pid}`);
  say(`store    ${store.url}  (${store.name})`);
  say(`folder   ${folder}  (logs/<service>-<n>.log)`);
  for (const one of processes) {
    const state = one.lives ? `pid ${one.pid}${one.frozen ? ' (frozen)' : ''}` : 'not running';
    say(
      `${one.name.padEnd(16)} ${state}  ${one.apiUrl ?? ''} ${one.internalUrl === undefined ? '' : `${one.internalUrl}/ready`}`,
    );
  }
  say('Verbs: kill|restart|freeze|resume <service> <n>, rolling, status. ^C stops everything.');
}

async function obey(target: Cluster, line: string): Promise<void> {
  const [verb, service, index] = line.split(/\s+/);
  const which = [service as ServiceName, Number(index)] as const;
  if (verb === 'kill') await target.kill(...which);
  else if (verb === 'restart') await target.restart(...which);
  else if (verb === 'freeze') target.freeze(...which);
  else if (verb === 'resume') target.resume(...which);
  else if (verb === 'rolling') await target.rollingRestart();
  else if (verb === 'status') describe(target);
  else if (line !== '') say(`'${line}' is no verb`);
}

type Flags = Readonly<Record<'port' | 'partitions' | 'schedulers' | 'runners' | 'gateways' | 'slots', string>> & {
  readonly store: 'sqlite' | 'mongodb';
};

function readFlags(): Flags {
  try {
    const { values: flags } = parseArgs({
      options: {
        help: { type: 'boolean', short: 'h', default: false },
        port: { ...text, default: '8080' },
        store: { ...text, default: 'sqlite' },
        partitions: { ...text, default: '16' },
        schedulers: { ...text, default: '3' },
        runners: { ...text, default: '3' },
        gateways: { ...text, default: '2' },
        slots: { ...text, default: '4' },
      },
    });
    if (flags.help) {
      process.stdout.write(USAGE);
      process.exit(0);
    }
    const { store } = flags;
    if (store !== 'sqlite' && store !== 'mongodb') throw new RangeError(`--store is sqlite or mongodb, not ${store}`);
    for (const name of ['port', 'partitions', 'schedulers', 'runners', 'gateways', 'slots'] as const) {
      if (!/^\d{1,5}$/.test(flags[name])) throw new RangeError(`--${name} is a number, not ${flags[name]}`);
    }
    return { ...flags, store };
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n${USAGE}`);
    process.exit(EXIT_USAGE);
  }
}
