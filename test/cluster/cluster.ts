/**
 * A small cluster on one machine: every service a process of its own, several of each, one broker, one store, an ingress
 * before them; with verbs for what can happen to each of them. It owns all of that and its folder.
 */
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SmallDisk, type TestBroker } from '@penstock/testkit';
import { startBrokers, type ClusterBrokers } from './brokers.ts';
import { startClusterStore, type ClusterStore, type StoreKind } from './cluster-store.ts';
import { NO_RATE_LIMITS } from '../support/server.ts';
import { startIngress, type Ingress } from './ingress.ts';
import { startLinks, stopLinks, type Links } from './links.ts';
import { ServiceProcess, type ProcessEnd, type ServiceName } from './service-process.ts';

export interface ClusterOptions {
  /** How many of each; default 3, 3 and 2, and one of each other. */
  readonly schedulers?: number | undefined;
  readonly runners?: number | undefined;
  readonly gateways?: number | undefined;
  readonly auths?: number | undefined;
  readonly registries?: number | undefined;
  readonly ingests?: number | undefined;
  /** Default 16. */
  readonly partitions?: number | undefined;
  /** Of each runner; default 4. */
  readonly slots?: number | undefined;
  /** Default: the services' own. */
  readonly runnerLeaseSecs?: number | undefined;
  readonly store?: StoreKind | undefined;
  /** Of the ingress; 0, the default, takes a free one. */
  readonly port?: number | undefined;
  /** Not less: where a service listens stands in its log. */
  readonly logLevel?: 'info' | 'debug' | 'trace' | undefined;
  /** Default 1. */
  readonly brokers?: 1 | 3 | undefined;
  /** Each process reaches the broker, and a store that is a server, by a proxy of its own, so that its connection alone can break. Default false. */
  readonly linked?: boolean | undefined;
  /** The wall clock of each process can be stepped. Default false. */
  readonly clocks?: boolean | undefined;
  /** The runners' folders, and the store of a single broker, are on disks that can be filled; needs root. Default false. */
  readonly disks?: boolean | undefined;
  /** More variables for every service. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Called once broker and store are there, and before any service is. */
  readonly prepare?: ((at: { readonly brokerUrl: string; readonly storeUrl: string }) => Promise<void>) | undefined;
  /** More variables for one kind of service. */
  readonly envOf?: Readonly<Partial<Record<ServiceName, Readonly<Record<string, string>>>>> | undefined;
}

export interface Cluster {
  /** Of the ingress. */
  readonly url: string;
  readonly apiKey: string;
  readonly folder: string;
  readonly partitions: number;
  /** The only one, or the first. */
  readonly broker: TestBroker;
  readonly brokers: ClusterBrokers;
  readonly store: ClusterStore;
  readonly ingress: Ingress;
  /** In the order of their kinds and numbers; the dead ones too. */
  readonly processes: readonly ServiceProcess[];
  of(service: ServiceName): readonly ServiceProcess[];
  at(service: ServiceName, index: number): ServiceProcess;
  /** By the names of the processes: what is between each and the broker. Empty where the cluster is not `linked`. */
  readonly links: Links;
  /** What is between each process and the store. Empty where the cluster is not `linked`, or the store is a file. */
  readonly storeLinks: Links;
  /** By the names of the processes: those whose folders are on small ones. */
  readonly disks: ReadonlyMap<string, SmallDisk>;
  /** Whether clocks can be stepped. */
  readonly hasClocks: boolean;
  /** From now on the wall clock of this process is so much ahead, or behind; 0 is the right time. */
  stepClock(name: string, byMs: number): void;
  /** Everything that was done to brokers, store, links, disks and clocks is over; the processes are left as they are. */
  heal(): Promise<void>;
  /** Default SIGKILL. Resolves when it is gone. */
  kill(service: ServiceName, index: number, signal?: NodeJS.Signals): Promise<ProcessEnd>;
  /** Ends it by SIGTERM where it lives, and starts it again; resolves when it is ready. */
  restart(service: ServiceName, index: number): Promise<void>;
  freeze(service: ServiceName, index: number): void;
  resume(service: ServiceName, index: number): void;
  /** Of each kind one after the other, each ready before the next one goes; the kinds side by side, as deployments are rolled out. */
  rollingRestart(): Promise<void>;
  /** Resolves when every process that lives is ready. */
  ready(): Promise<void>;
  /** Ends everything and removes the folder, unless it is to be kept for a look. */
  stop(options?: { readonly keepFolder?: boolean }): Promise<void>;
}

const PARTITIONS = 16;
/** Of a runner: many times what it needs to take stages. */
const RUNNER_DISK_BYTES = 96 * 1024 ** 2;
const CLOCK_MODULE = new URL('stepped-clock.ts', import.meta.url).href;
/** A process that hangs in its drain must not hold up the end of a test. */
const STOP_MS_MAX = 15_000;

export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-cluster-'));
  const cleanUp: (() => Promise<unknown>)[] = [];
  try {
    const brokers = await startBrokers(options.brokers ?? 1, options.disks === true);
    cleanUp.push(() => brokers.stop());
    const store = await startClusterStore(options.store ?? 'sqlite', folder);
    cleanUp.push(() => store.stop());
    await options.prepare?.({ brokerUrl: brokers.url, storeUrl: store.directUrl });
    const apiKey = randomBytes(24).toString('hex');
    // First, since the services are given the address that clients know.
    let processes: ServiceProcess[] = [];
    const ingress = await startIngress({ port: options.port ?? 0, backends: () => processes });
    cleanUp.push(() => ingress.stop());
    const linked = options.linked === true ? namesOf(options) : [];
    const links = await startLinks(
      linked,
      brokers.servers.map(({ port }) => port),
    );
    cleanUp.push(() => stopLinks(links));
    const storeLinks = await startLinks(store.port === undefined ? [] : linked, [store.port ?? 0]);
    cleanUp.push(() => stopLinks(storeLinks));
    const disks = new Map<string, SmallDisk>();
    cleanUp.push(async () => disks.forEach((disk) => disk.remove()));
    for (const name of options.disks === true ? namesOf(options) : [])
      if (name.startsWith('runner-')) disks.set(name, new SmallDisk(RUNNER_DISK_BYTES));
    processes = makeProcesses(options, {
      folder,
      apiKey,
      jwtSecret: randomBytes(32).toString('hex'),
      brokerUrl: brokers.url,
      store,
      links,
      storeLinks,
      disks,
      url: ingress.url,
    });
    cleanUp.push(() => Promise.all(processes.map((one) => one.close())));
    for (const one of processes) one.start();
    const cluster = new LocalCluster({
      folder,
      apiKey,
      partitions: options.partitions ?? PARTITIONS,
      brokers,
      store,
      links,
      storeLinks,
      disks,
      hasClocks: options.clocks === true,
      processes,
      ingress,
    });
    await cluster.ready();
    return cluster;
  } catch (error) {
    for (const clean of cleanUp.toReversed()) await clean().catch(() => {});
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}

function countsOf(options: ClusterOptions): readonly (readonly [ServiceName, number])[] {
  return [
    ['scheduler', options.schedulers ?? 3],
    ['runner', options.runners ?? 3],
    ['gateway', options.gateways ?? 2],
    ['auth', options.auths ?? 1],
    ['registry', options.registries ?? 1],
    ['webhook-ingest', options.ingests ?? 1],
  ];
}

function namesOf(options: ClusterOptions): string[] {
  return countsOf(options).flatMap(([service, count]) =>
    Array.from({ length: count }, (_, index) => `${service}-${index}`),
  );
}

function makeProcesses(
  options: ClusterOptions,
  shared: {
    readonly folder: string;
    readonly apiKey: string;
    readonly jwtSecret: string;
    readonly brokerUrl: string;
    readonly store: ClusterStore;
    readonly links: Links;
    readonly storeLinks: Links;
    readonly disks: ReadonlyMap<string, SmallDisk>;
    readonly url: string;
  },
): ServiceProcess[] {
  const logs = join(shared.folder, 'logs');
  mkdirSync(logs);
  const common = {
    SERVICE_NATS_URL: shared.brokerUrl,
    SERVICE_STORE_URL: shared.store.url,
    SERVICE_PARTITIONS: String(options.partitions ?? PARTITIONS),
    SERVICE_INTERNAL_LISTEN: '127.0.0.1:0',
    SERVICE_LOG_LEVEL: options.logLevel ?? 'info',
    ...NO_RATE_LIMITS,
    JWT_SECRET: shared.jwtSecret,
    SERVICE_BASE_URL: shared.url,
    ...(options.runnerLeaseSecs === undefined ? {} : { SERVICE_RUNNER_LEASE_SECS: String(options.runnerLeaseSecs) }),
    // All its clients have one address, and the load that it is made for would be over any limit.
    SERVICE_STREAMS_PER_USER: '100000',
    SERVICE_RATE_LIMIT_READ: '0',
    SERVICE_RATE_LIMIT_API: '0',
    SERVICE_RATE_LIMIT_WEBHOOK: '0',
    // The ingress, on this machine.
    SERVICE_TRUST_PROXY: '127.0.0.1',
    SERVICE_MODE: 'development',
    SERVICE_DRAIN: '30s',
    // Stages of the tests write where only the tests' own user may.
    SERVICE_STAGE_UIDS: 'off',
    ...options.env,
  };
  const api = { SERVICE_LISTEN: '127.0.0.1:0', SERVICE_API_KEY: shared.apiKey };
  const own = (service: ServiceName, index: number): Record<string, string> => {
    if (service === 'scheduler') return {};
    const name = `${service}-${index}`;
    const dataDir = { SERVICE_DATA_DIR: join(shared.disks.get(name)?.folder ?? shared.folder, name) };
    if (service === 'runner')
      return { ...dataDir, SERVICE_RUNNER_ID: `runner-${index}`, SERVICE_SLOTS: String(options.slots ?? 4) };
    return service === 'webhook-ingest' ? { ...api, ...dataDir } : api;
  };
  const linkOf = (name: string): Record<string, string> => {
    const link = shared.links.get(name);
    const [storePort] = shared.storeLinks.get(name)?.ports ?? [];
    return {
      ...(link === undefined ? {} : { SERVICE_NATS_URL: link.url }),
      ...(storePort === undefined ? {} : { SERVICE_STORE_URL: shared.store.urlAt(storePort) }),
    };
  };
  const clockOf = (name: string): Record<string, string> =>
    options.clocks === true
      ? {
          CLUSTER_CLOCK_FILE: clockFile(shared.folder, name),
          NODE_OPTIONS: `${process.env['NODE_OPTIONS'] ?? ''} --import ${CLOCK_MODULE}`,
        }
      : {};
  return countsOf(options).flatMap(([service, count]) =>
    Array.from(
      { length: count },
      (_, index) =>
        new ServiceProcess({
          service,
          index,
          env: {
            ...common,
            ...own(service, index),
            ...linkOf(`${service}-${index}`),
            ...clockOf(`${service}-${index}`),
            ...options.envOf?.[service],
          },
          logFile: join(logs, `${service}-${index}.log`),
        }),
    ),
  );
}

function clockFile(folder: string, name: string): string {
  return join(folder, `clock-${name}`);
}

interface Parts {
  readonly folder: string;
  readonly apiKey: string;
  readonly partitions: number;
  readonly brokers: ClusterBrokers;
  readonly store: ClusterStore;
  readonly links: Links;
  readonly storeLinks: Links;
  readonly disks: ReadonlyMap<string, SmallDisk>;
  readonly hasClocks: boolean;
  readonly processes: readonly ServiceProcess[];
  readonly ingress: Ingress;
}

class LocalCluster implements Cluster {
  readonly folder: string;
  readonly apiKey: string;
  readonly partitions: number;
  readonly brokers: ClusterBrokers;
  readonly store: ClusterStore;
  readonly links: Links;
  readonly storeLinks: Links;
  readonly disks: ReadonlyMap<string, SmallDisk>;
  readonly hasClocks: boolean;
  readonly processes: readonly ServiceProcess[];
  readonly ingress: Ingress;

  constructor(parts: Parts) {
    this.folder = parts.folder;
    this.apiKey = parts.apiKey;
    this.partitions = parts.partitions;
    this.brokers = parts.brokers;
    this.store = parts.store;
    this.links = parts.links;
    this.storeLinks = parts.storeLinks;
    this.disks = parts.disks;
    this.hasClocks = parts.hasClocks;
    this.processes = parts.processes;
    this.ingress = parts.ingress;
  }

  get url(): string {
    return this.ingress.url;
  }

  get broker(): TestBroker {
    const [broker] = this.brokers.servers;
    if (broker === undefined) throw new Error('a cluster has a broker');
    return broker;
  }

  of(service: ServiceName): readonly ServiceProcess[] {
    return this.processes.filter((one) => one.service === service);
  }

  at(service: ServiceName, index: number): ServiceProcess {
    const found = this.of(service)[index];
    if (found === undefined)
      throw new RangeError(`there is no ${service} ${index}; there are ${this.of(service).length}, counted from 0`);
    return found;
  }

  kill(service: ServiceName, index: number, signal: NodeJS.Signals = 'SIGKILL'): Promise<ProcessEnd> {
    return this.at(service, index).kill(signal);
  }

  async restart(service: ServiceName, index: number): Promise<void> {
    const one = this.at(service, index);
    await one.kill('SIGTERM');
    one.start();
    await one.ready();
  }

  freeze(service: ServiceName, index: number): void {
    this.at(service, index).freeze();
  }

  resume(service: ServiceName, index: number): void {
    this.at(service, index).resume();
  }

  async rollingRestart(): Promise<void> {
    const kinds = Map.groupBy(this.processes, ({ service }) => service);
    await Promise.all(
      [...kinds.values()].map(async (kind) => {
        for (const { service, index } of kind) await this.restart(service, index);
      }),
    );
  }

  async ready(): Promise<void> {
    await Promise.all(this.processes.filter((one) => one.lives).map((one) => one.ready()));
  }

  stepClock(name: string, byMs: number): void {
    writeFileSync(clockFile(this.folder, name), String(byMs));
  }

  async heal(): Promise<void> {
    for (const disk of this.disks.values()) disk.empty();
    await this.brokers.heal();
    for (const link of [...this.links.values(), ...this.storeLinks.values()]) link.cut();
    for (const { name } of this.hasClocks ? this.processes : []) this.stepClock(name, 0);
    await this.store.heal();
  }

  async stop(options: { readonly keepFolder?: boolean } = {}): Promise<void> {
    await this.heal();
    await this.ingress.stop();
    // Runners first: their stages are reported while somebody is there to hear it.
    for (const service of ['runner', 'webhook-ingest', 'gateway', 'registry', 'auth', 'scheduler'] as const)
      await Promise.all(this.of(service).map((one) => endWithin(one, STOP_MS_MAX)));
    await Promise.all(this.processes.map((one) => one.close()));
    await stopLinks(this.links);
    await stopLinks(this.storeLinks);
    await this.brokers.stop();
    await this.store.stop();
    for (const disk of this.disks.values()) disk.remove();
    if (options.keepFolder !== true)
      rmSync(this.folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
}

async function endWithin(one: ServiceProcess, limitMs: number): Promise<void> {
  const late = setTimeout(() => void one.kill('SIGKILL'), limitMs);
  try {
    await one.kill('SIGTERM');
  } finally {
    clearTimeout(late);
  }
}
