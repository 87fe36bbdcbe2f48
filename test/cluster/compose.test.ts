/**
 * `deploy/compose.yaml` without an engine: its services as processes, each with the environment and the secrets that stand
 * there and none besides, on the broker's configuration that the set-up makes. What takes an engine (images, networks, users,
 * the read-only root) is not seen here, and neither is MongoDB, whose place a SQLite file takes.
 */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { unknownVariables } from '@penstock/config';
import { brokerBinary } from '@penstock/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { temporaryFolder, TRIGGER } from '../support/server.ts';
import { until } from '../support/wait.ts';
import { ServiceProcess, type ServiceName } from './service-process.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SECRETS = '/run/secrets/';
const SERVICES: readonly ServiceName[] = ['scheduler', 'auth', 'registry', 'gateway', 'webhook-ingest', 'runner'];

interface ComposeService {
  readonly image: string;
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly secrets?: readonly string[];
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly privileged?: boolean;
}
interface Compose {
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly secrets: Readonly<Record<string, { readonly file: string }>>;
}

const compose = parse(readFileSync(join(ROOT, 'deploy/compose.yaml'), 'utf8'), { merge: true }) as Compose;
const serviceOf = (name: ServiceName): ComposeService => {
  const service = compose.services[name === 'runner' ? 'runner-1' : name];
  if (service === undefined) throw new Error(`there is no ${name} in compose.yaml`);
  return service;
};

describe('compose.yaml', () => {
  it.each(SERVICES)('starts %s with variables that there are, and secrets that it is given', (name) => {
    const { command, environment, secrets = [], ...rest } = serviceOf(name);
    expect(command).toEqual(['service', name]);
    expect([rest.read_only, rest.cap_drop, rest.privileged]).toEqual([true, ['ALL'], undefined]);
    const names = Object.entries(environment).map(([variable, value]) =>
      value.startsWith(SECRETS) ? variable.replace(/_FILE$/, '') : variable,
    );
    expect(unknownVariables(Object.fromEntries(names.map((variable) => [variable, ''])))).toEqual([]);
    const used = Object.values(environment).filter((value) => value.startsWith(SECRETS));
    expect(new Set(used.map((file) => file.slice(SECRETS.length)))).toEqual(new Set(secrets));
  });

  it('passes on what names a receiver of traces to who sends them, and to nobody else', () => {
    const told = ({ environment = {} }: Partial<ComposeService>): string[] =>
      Object.entries(environment).flatMap(([name, value]) =>
        name.startsWith('OTEL_') && value === `\${${name}:-}` ? [name] : [],
      );
    const senders = Object.entries(compose.services).filter(([, service]) => told(service).length > 0);
    expect(senders.map(([name]) => name)).toEqual(['scheduler', 'runner-1']);
    for (const [, service] of senders)
      expect(told(service)).toEqual(
        expect.arrayContaining(['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_TRACES_SAMPLER']),
      );
  });

  it('gives the broker’s password of a service to that service alone, and the master key to auth alone', () => {
    const holders = (secret: string): string[] =>
      Object.entries(compose.services)
        .filter(([, { secrets = [] }]) => secrets.includes(secret))
        .map(([name]) => name);
    for (const name of Object.keys(compose.secrets).filter((secret) => secret.startsWith('nats-')))
      expect(holders(name)).toEqual([name === 'nats-setup' ? 'broker-setup' : name.slice('nats-'.length)]);
    expect(holders('master-key')).toEqual(['auth']);
    expect(holders('slip-key')).toEqual(['scheduler', 'auth']);
  });
});

describe('services of compose.yaml as processes', () => {
  let temporary: ReturnType<typeof temporaryFolder>;
  let folder: string;
  let broker: ChildProcess | undefined;
  const running: ServiceProcess[] = [];
  const secretFile = (name: string): string => join(folder, 'compose/secrets', name);

  beforeAll(async () => {
    temporary = temporaryFolder();
    folder = temporary.path;
    mkdirSync(join(folder, 'compose'), { recursive: true });
    for (const file of ['secrets.sh', 'compose/setup.sh'])
      writeFileSync(join(folder, file), readFileSync(join(ROOT, 'deploy', file)));
    setUp();
    const nats = secretFile('nats/nats.conf');
    const text = readFileSync(nats, 'utf8')
      .replace('0.0.0.0:4222', '127.0.0.1:-1')
      .replace('/var/lib/nats', join(folder, 'nats'));
    writeFileSync(nats, text);
    broker = spawn(await brokerBinary(), ['--config', nats], { stdio: ['ignore', 'ignore', 'pipe'] });
    const address = await addressOf(broker);
    for (const name of readdirSync(join(folder, 'compose/secrets')).filter((file) => file.startsWith('nats-')))
      writeFileSync(secretFile(name), readFileSync(secretFile(name), 'utf8').replace('@nats:4222', `@${address}`));
    writeFileSync(secretFile('store-url'), `sqlite:${join(folder, 'store.sqlite')}`);
  }, 120_000);

  afterAll(async () => {
    for (const service of running) await service.close();
    if (broker?.exitCode === null) {
      broker.kill('SIGKILL');
      await once(broker, 'exit');
    }
    temporary.remove();
  });

  function setUp(): void {
    execFileSync('sh', [join(folder, 'compose/setup.sh'), 'https://ci.example.org'], {
      env: {
        ...process.env,
        PENSTOCK_GENERATE: `${process.execPath} ${join(ROOT, 'deploy/nats/generate.ts')} --out ${join(folder, 'compose/secrets/nats')}`,
      },
      stdio: 'ignore',
    });
  }

  /** What a container's process has once `with-secrets` has read the files. */
  function environmentOf(name: string): Record<string, string> {
    const { environment = {} } = compose.services[name] ?? {};
    const given = Object.entries(environment).map(([variable, value]) => [
      variable,
      value
        .replace('/run/secrets', join(folder, 'compose/secrets'))
        .replace(/\$\{PENSTOCK_URL:\?.*\}/, 'https://ci.example.org')
        .replace(/\$\{\w+:-(.*)\}/, '$1'),
    ]);
    const printed = execFileSync(
      join(ROOT, 'deploy/image/with-secrets'),
      [process.execPath, '-p', 'JSON.stringify(process.env)'],
      {
        env: { PATH: process.env['PATH'], ...(Object.fromEntries(given) as Record<string, string>) },
        encoding: 'utf8',
      },
    );
    return JSON.parse(printed) as Record<string, string>;
  }

  it('the set-up makes secrets once, which containers can read, in a folder that is its maker’s alone', () => {
    const before = readdirSync(join(folder, 'compose/secrets')).map((name) => [name, statSync(secretFile(name)).ino]);
    setUp();
    expect(readdirSync(join(folder, 'compose/secrets')).map((name) => [name, statSync(secretFile(name)).ino])).toEqual(
      before,
    );
    expect(statSync(join(folder, 'compose/secrets')).mode & 0o777).toBe(0o700);
    for (const { file } of Object.values(compose.secrets))
      expect(statSync(join(folder, file)).mode & 0o777).toBe(0o644);
    expect(readFileSync(join(folder, '.env'), 'utf8')).toBe('PENSTOCK_URL=https://ci.example.org\n');
  });

  it('the services are ready on the configured broker, and a pipeline runs from its trigger to its end', async () => {
    execFileSync(process.execPath, [join(ROOT, 'deploy/nats/setup.ts')], {
      env: environmentOf('broker-setup'),
      stdio: 'pipe',
    });
    for (const [index, name] of SERVICES.entries()) {
      const service = new ServiceProcess({
        service: name,
        index,
        env: {
          ...environmentOf(name === 'runner' ? 'runner-1' : name),
          SERVICE_LISTEN: '127.0.0.1:0',
          SERVICE_INTERNAL_LISTEN: '127.0.0.1:0',
          SERVICE_DATA_DIR: join(folder, name),
          SERVICE_ALLOW_UNISOLATED: 'true',
        },
        logFile: join(folder, `${name}.log`),
      });
      running.push(service);
      service.start();
    }
    await Promise.all(running.map(async (service) => await service.ready()));
    const yaml = 'pipeline: {name: composed}\nstages:\n  only: {run: "echo composed"}\n';
    expect(await asked('api-key', TRIGGER, { yaml, waitSeconds: 60 })).toMatchObject({
      data: { triggerPipeline: { run: { status: 'SUCCESS' } } },
    });
  }, 180_000);

  it('the key for administration deletes a tenant’s everything, for which the broker lets the gateway ask all the others', async () => {
    const purge = 'mutation { adminPurge(tenant: "service") { isDone waitsFor runs } }';
    expect(await asked('api-key', purge)).toMatchObject({ errors: [{ extensions: { code: 'UNAUTHENTICATED' } }] });
    expect(await asked('admin-key', purge)).toEqual({
      data: { adminPurge: { isDone: true, waitsFor: null, runs: 1 } },
    });
    expect(await asked('api-key', '{ runs { id } }')).toEqual({ data: { runs: [] } });
  }, 60_000);

  async function asked(secret: string, query: string, variables: object = {}): Promise<unknown> {
    const gateway = running.find(({ service }) => service === 'gateway');
    const response = await fetch(`${gateway?.apiUrl ?? ''}/graphql`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${readFileSync(secretFile(secret), 'utf8')}`,
      },
      body: JSON.stringify({ query, variables }),
    });
    return await response.json();
  }
});

/** Resolves to host and port once the broker takes connections. */
async function addressOf(broker: ChildProcess): Promise<string> {
  let said = '';
  broker.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  return await until('the broker', () => {
    if (broker.exitCode !== null) throw new Error(`the broker ended: ${said}`);
    return said.includes('Server is ready') ? /client connections on (\S+)/.exec(said)?.[1] : undefined;
  });
}
