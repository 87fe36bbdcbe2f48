/** Log streams of a gateway, as tests watch them. */
import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { GatewayOptions } from '../src/ports.ts';
import { API_KEY, happened, LogSource, runIdFor, YAML, type World } from './harness.ts';
import { SseClient } from './sse-client.ts';

export interface LogStreams {
  listening(options?: Partial<GatewayOptions>): Promise<{ readonly app: FastifyInstance; readonly url: string }>;
  watch(
    url: string,
    runId: string,
    options?: { readonly lastEventId?: string | undefined; readonly token?: string },
  ): Promise<SseClient>;
  /** Is closed with those that are watched. */
  opened(client: SseClient): SseClient;
  logOf(runId: string): LogSource;
  newRun(): { readonly id: string; readonly log: LogSource };
  /** A whole run of two stages with logs; returns its outline. */
  play(id: string, log: LogSource): Promise<string[]>;
  close(): void;
}

export function logStreams(world: () => World): LogStreams {
  const clients: SseClient[] = [];
  const logs: LogSource[] = [];
  const opened = (client: SseClient): SseClient => {
    clients.push(client);
    return client;
  };
  const logOf = (runId: string): LogSource => {
    const log = new LogSource(world().ownerBus, runId);
    logs.push(log);
    return log;
  };
  return {
    opened,
    logOf,
    async listening(options = {}) {
      const app = await world().gateway(options);
      await app.listen({ host: '127.0.0.1', port: 0 });
      return { app, url: `http://127.0.0.1:${(app.server.address() as AddressInfo).port}` };
    },
    async watch(url, runId, options = {}) {
      const { lastEventId } = options;
      const client = await SseClient.open(`${url}/pipeline/${runId}/logs`, {
        token: options.token ?? API_KEY,
        ...(lastEventId === undefined ? {} : { lastEventId }),
      });
      return opened(client);
    },
    newRun() {
      const id = runIdFor();
      world().owner.adopt(id, YAML);
      return { id, log: logOf(id) };
    },
    async play(id, log) {
      const { owner } = world();
      owner.commit(id, [happened.queued('build')]);
      owner.commit(id, [happened.started('build')]);
      await log.write('build', 'one\ntwo\n');
      const bytes = await log.write('build', 'three\n');
      owner.commit(id, [happened.completed('build', bytes), happened.queued('test'), happened.started('test')]);
      owner.commit(id, [happened.completed('test', await log.write('test', 'ok\n')), happened.runCompleted()]);
      return [
        'stage_started build',
        'build| one',
        'build| two',
        'build| three',
        'stage_completed build',
        'stage_started test',
        'test| ok',
        'stage_completed test',
        'pipeline_completed',
      ];
    },
    close() {
      for (const client of clients.splice(0)) client.close();
      for (const log of logs.splice(0)) log.close();
    },
  };
}
