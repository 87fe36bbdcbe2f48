/** Starts a gateway that listens, as part of a process that has a bus and a store. */
import { closeWithin } from '@penstock/http';
import { buildGateway } from './app.ts';
import type { GatewayOptions } from './ports.ts';

export interface StartGatewayOptions extends GatewayOptions {
  readonly listen: { readonly host: string; readonly port: number };
}

export interface RunningGateway {
  readonly host: string;
  readonly port: number;
  /** `http://127.0.0.1:8080` */
  readonly url: string;
  /** Answers what is under way, tells log streams to come back elsewhere, and ends within `deadlineMs` (default 5,000). */
  close(deadlineMs?: number): Promise<void>;
}

const CLOSE_MS_MAX = 5_000;

/** Rejects with the listening error (`EADDRINUSE`, `EACCES`). Port 0 takes a free one. */
export async function startGateway(options: StartGatewayOptions): Promise<RunningGateway> {
  const app = await buildGateway(options);
  try {
    await app.listen({ host: options.listen.host, port: options.listen.port, backlog: 1024 });
  } catch (error) {
    await app.close();
    throw error;
  }
  const address = app.server.address();
  const port = typeof address === 'object' && address !== null ? address.port : options.listen.port;
  const { host } = options.listen;
  return {
    host,
    port,
    url: `http://${host.includes(':') ? `[${host}]` : host}:${port}`,
    close: (deadlineMs = CLOSE_MS_MAX) => closeWithin(app, deadlineMs),
  };
}
