/** The thread of the API (`api-thread.ts` is its other side). It loads while the engine starts, and waits to be told. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { createBirpc } from 'birpc';
import { Unavailable } from '@penstock/errors';
import { answerOf, forgetCompiled, giveBackWhenIdle, type CallAnswer } from '@penstock/service';
import { withRequest, type RequestContext } from '@penstock/telemetry/request';
import { doorByCalls } from './door-calls.ts';
import { givenInAnswer } from './given-away.ts';
import { CALL_MS_MAX, mirrorsByCalls, type EngineCalls } from './mirror-calls.ts';
import type { BusAddress } from '../bus-address.ts';
import { startApi, type ApiOptions, type RunningApi } from './start-api.ts';

export interface ApiCalls {
  /** Resolves when it listens; rejects with the cause. */
  start(options: ApiOptions, busAddress: BusAddress): Promise<{ readonly url: string; readonly port: number }>;
  /** The engine drains, and the API goes on meanwhile. */
  announceStop(): void;
  /** Answers when the loop of this thread turns. */
  ping(): void;
  /** What the runner asks of those who keep bytes. */
  keep(runner: string, verb: string, body: unknown, request?: RequestContext): Promise<CallAnswer<unknown>>;
  close(): Promise<void>;
}

const port = parentPort;
if (port === null) throw new Error('the API thread is started by api-thread.ts only');

forgetCompiled();
let api: RunningApi | undefined;
const engine = createBirpc<EngineCalls, ApiCalls>(
  {
    async start(options, busAddress) {
      api = await startApi(options, busAddress, {
        mirrors: mirrorsByCalls(engine),
        figures: () => engine.figures(),
        door: doorByCalls(engine),
        line: workerData as MessagePort,
      });
      giveBackWhenIdle();
      return { url: api.url, port: api.port };
    },
    announceStop() {
      api?.announceStop();
    },
    ping() {},
    keep: (runner, verb, body, request) =>
      withRequest(request, () =>
        answerOf(() => {
          if (api === undefined) throw new Unavailable('The API is being started.');
          return api.answerRunner(runner, verb, body);
        }),
      ),
    async close() {
      await api?.close();
    },
  },
  {
    post: (message) => port.postMessage(message, givenInAnswer(message)),
    on: (handle) => port.on('message', handle),
    timeout: CALL_MS_MAX,
  },
);
