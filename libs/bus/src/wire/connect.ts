/** Making a bus: one connection that never gives up, to a broker that is new enough. */
import { type NatsConnection, nkeyAuthenticator, type NodeConnectionOptions, wsconnect } from '@nats-io/transport-node';
import { backoffMs, pause } from '@penstock/async';
import { BROKER_BACKOFF } from './backoff.ts';
import type { Bus } from './bus.ts';
import { BrokerAway, BrokerTooOld } from '../contract/errors.ts';
import { takeForeignHeaders } from './foreign-headers.ts';
import { NatsBus } from './nats-bus.ts';
import { connectByTcp } from './transport.ts';
import { Wire } from './wire.ts';
import { type Log, silentLog } from '@penstock/telemetry/log';

export interface ConnectOptions {
  readonly servers: string | readonly string[];
  readonly user?: string | undefined;
  readonly pass?: string | undefined;
  readonly token?: string | undefined;
  /** The seed of an Ed25519 key of which the broker has the public part. */
  readonly seed?: Uint8Array | undefined;
  /**
   * Opens each connection, first and later ones, over WebSocket; `servers` is shown only. Whoever uses it has no other bus in its
   * process: the client has one kind of connection at a time. Who opens them is let in anew each time, so that a refusal is tried again
   like any other failure: a broker that reads who is let in refuses whoever is about to say who it is (nats-server 2.15.1).
   */
  readonly openSocket?: (() => WebSocket) | undefined;
  /**
   * Requests that reach a responder of this very bus go straight to it, and their answers back (`ShortWay`): where nobody else answers on
   * these subjects. Default false.
   */
  readonly answersItself?: boolean | undefined;
  /** Shown by the broker, e.g. `scheduler-7`. */
  readonly name: string;
  /** Where answers arrive; broker permissions bind it. Default `_INBOX`. */
  readonly inboxPrefix?: string | undefined;
  readonly log?: Log | undefined;
  /** How long the first connection is tried. Default 10,000; afterwards it reconnects without end. */
  readonly connectTimeoutMs?: number | undefined;
  /** A broker that is silent for three of these is left. Default 2,000. */
  readonly pingIntervalMs?: number | undefined;
}

/** Older servers could lose acknowledged messages, or a whole stream, when killed. */
const SERVER_FLOOR = [2, 14] as const;
const CONNECT_TIMEOUT_MS = 10_000;
/** A frozen broker's kernel still accepts connections; the greeting must come in this time. */
const HANDSHAKE_TIMEOUT_MS = 3_000;
/** Over WebSocket what leads there may have to be asked first. */
const SOCKET_HANDSHAKE_TIMEOUT_MS = 40_000;
/** Three unanswered: noticed within 6 s, the time of a membership. */
const PING_INTERVAL_MS = 2_000;
const PINGS_UNANSWERED_MAX = 2;
/** Above the usual restart of a broker, so that hundreds of clients do not dial in step; below what a user notices. */
const RECONNECT_BACKOFF = { ...BROKER_BACKOFF, maxMs: 2_000 };

/** Throws `BrokerAway` (nobody there in time, or wrong credentials without `openSocket`) or `BrokerTooOld` (below 2.14). */
export async function connectBus(options: ConnectOptions): Promise<Bus> {
  takeForeignHeaders();
  const inboxPrefix = options.inboxPrefix ?? '_INBOX';
  const connection = await dial(options, inboxPrefix);
  const version = connection.info?.version ?? '0.0.0';
  if (isTooOld(version)) {
    await connection.close();
    throw new BrokerTooOld(version, SERVER_FLOOR.join('.'));
  }
  return new NatsBus(options.name, new Wire(connection, inboxPrefix, options.log ?? silentLog, options.answersItself));
}

function isTooOld(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map((part) => Number.parseInt(part, 10));
  return major < SERVER_FLOOR[0] || (major === SERVER_FLOOR[0] && minor < SERVER_FLOOR[1]);
}

async function dial(options: ConnectOptions, inboxPrefix: string): Promise<NatsConnection> {
  let attempt = 0;
  const natsOptions: NodeConnectionOptions = {
    servers: typeof options.servers === 'string' ? options.servers.split(',') : [...options.servers],
    name: options.name,
    inboxPrefix,
    maxReconnectAttempts: -1,
    // Credentials may be refused for a moment while a broker reloads them; giving up would need a restart of ours.
    ignoreAuthErrorAbort: true,
    reconnectDelayHandler: () => backoffMs(attempt, RECONNECT_BACKOFF),
    timeout: HANDSHAKE_TIMEOUT_MS,
    pingInterval: options.pingIntervalMs ?? PING_INTERVAL_MS,
    maxPingOut: PINGS_UNANSWERED_MAX,
    noAsyncTraces: true,
    ...(options.user === undefined ? {} : { user: options.user }),
    ...(options.pass === undefined ? {} : { pass: options.pass }),
    ...(options.token === undefined ? {} : { token: options.token }),
    ...(options.seed === undefined ? {} : { authenticator: nkeyAuthenticator(options.seed) }),
  };
  const deadline = performance.now() + (options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS);
  for (;;) {
    attempt += 1;
    try {
      const connection = await open(natsOptions, options.openSocket);
      attempt = 1;
      void countDials(connection, (dials) => {
        attempt = dials + 1;
      });
      return connection;
    } catch (error) {
      const cause = error as Error;
      const isRefused = cause.name === 'AuthorizationError' && options.openSocket === undefined;
      const hopeless = isRefused || cause.name === 'InvalidArgumentError';
      const waitMs = backoffMs(attempt, RECONNECT_BACKOFF);
      if (hopeless || performance.now() + waitMs > deadline) {
        throw new BrokerAway(
          `cannot connect to the broker at ${withoutCredentials(natsOptions.servers)}: ${cause.message}`,
          false,
          { cause },
        );
      }
      await pause(waitMs);
    }
  }
}

async function open(
  natsOptions: NodeConnectionOptions,
  openSocket: ConnectOptions['openSocket'],
): Promise<NatsConnection> {
  if (openSocket === undefined) return await connectByTcp(natsOptions);
  // What it carries is encrypted or not as its address says, which the socket knows alone.
  return await wsconnect({
    ...natsOptions,
    timeout: SOCKET_HANDSHAKE_TIMEOUT_MS,
    wsFactory: () => Promise.resolve({ socket: openSocket(), encrypted: false }),
  });
}

/** Counts the dials since the connection was last up, for the backoff between them. */
async function countDials(connection: NatsConnection, set: (dials: number) => void): Promise<void> {
  let dials = 0;
  for await (const status of connection.status()) {
    if (status.type === 'reconnecting') dials += 1;
    else if (status.type === 'reconnect') dials = 0;
    else continue;
    set(dials);
  }
}

function withoutCredentials(servers: string | string[] | undefined): string {
  return [servers ?? []]
    .flat()
    .map((server) => server.replace(/\/\/[^@/]*@/, '//'))
    .join(', ');
}
