/**
 * The public side of a service that runs as a process of its own: the server with the settings that all services share, the
 * count of its peers, which divides the rate limits, and the steps that end both.
 */
import type { Bus, PeerService } from '@penstock/bus';
import type { Configuration } from '@penstock/config';
import { buildServer, closeWithin } from '@penstock/http';
import type { Logger } from '@penstock/telemetry';
import type { Meter } from '@penstock/telemetry/metrics';
import { httpSettings, type HTTP_KEYS } from './http-settings.ts';
import { countPeers } from './peers.ts';
import type { DrainStep } from './service.ts';

export interface PublicServerOptions {
  readonly name: PeerService;
  readonly settings: Configuration<(typeof HTTP_KEYS)[number]>;
  readonly bus: Bus;
  readonly log: Logger;
  readonly meter: Meter;
  readonly connectionsMax: number;
}

export interface PublicServer {
  /** Routes are added to it before `listen`. */
  readonly app: ReturnType<typeof buildServer>;
  /** `http://127.0.0.1:8080`; '' before `listen` has resolved. */
  readonly url: string;
  listen(): Promise<void>;
  /** These come first: nobody is answered by what has been closed already. */
  readonly drain: readonly DrainStep[];
}

/** What waits for an owner has its answer within 10 s; broken off before that, nobody would know what became of it. */
const CLOSE_MS_MAX = 12_000;
/** Connections that the kernel holds until they are accepted: a burst of hosts and clients at a restart. */
const BACKLOG = 1_024;

export function publicServer({ name, settings, bus, log, meter, connectionsMax }: PublicServerOptions): PublicServer {
  const peers = countPeers(bus, name);
  const app = buildServer({ ...httpSettings(settings, () => peers.count()), connectionsMax, log, meter });
  let url = '';
  return {
    app,
    get url() {
      return url;
    },
    async listen() {
      const { host, port } = settings.listen;
      url = await app.listen({ host, port, backlog: BACKLOG });
      log.info({ url }, 'listens');
    },
    drain: [
      ['peers', () => peers.stop()],
      ['server', () => closeWithin(app, CLOSE_MS_MAX)],
    ],
  };
}
