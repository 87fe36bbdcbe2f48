/**
 * The load of the gateway's benchmark, in a process of its own so that it does not count as the server's work. Started
 * with a plan in its arguments; prints one line of JSON.
 */
import { connect, type Socket } from 'node:net';

interface RequestPlan {
  readonly kind: 'requests';
  readonly port: number;
  readonly path: string;
  readonly body: string;
  /** Sent with each request; default: none. */
  readonly token?: string | undefined;
  readonly connections: number;
  readonly durationMs: number;
}

interface StreamPlan {
  readonly kind: 'streams';
  readonly port: number;
  readonly path: string;
  readonly clients: number;
  /** Bytes by which a client knows that its stream is complete. */
  readonly last: string;
}

export type LoadPlan = RequestPlan | StreamPlan;
export interface RequestResult {
  readonly perSecond: number;
  /** The warming up included. */
  readonly answered: number;
}
export interface StreamResult {
  readonly lagMsP50: number;
  readonly lagMsP99: number;
}

const HEAD_END = Buffer.from('\r\n\r\n');

async function sendRequests(plan: RequestPlan): Promise<RequestResult> {
  const request = Buffer.from(
    `POST ${plan.path} HTTP/1.1\r\nHost: localhost\r\n${plan.token === undefined ? '' : `Authorization: Bearer ${plan.token}\r\n`}Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(plan.body)}\r\n\r\n${plan.body}`,
  );
  let answered = 0;
  const sockets = Array.from({ length: plan.connections }, () => {
    const socket = connect(plan.port, '127.0.0.1');
    let received = Buffer.alloc(0);
    socket.on('data', (bytes) => {
      received = received.length === 0 ? Buffer.from(bytes) : Buffer.concat([received, Buffer.from(bytes)]);
      const end = received.indexOf(HEAD_END);
      if (end < 0) return;
      const length = Number(/content-length: (\d+)/iu.exec(received.toString('latin1', 0, end))?.[1]);
      if (received.length < end + 4 + length) return;
      if (!received.toString('latin1', 9, 12).startsWith('200')) throw new Error(received.toString());
      received = Buffer.alloc(0);
      answered += 1;
      socket.write(request);
    });
    socket.write(request);
    return socket;
  });
  // What happens before is the warming up of both sides.
  await later(plan.durationMs / 4);
  const before = answered;
  const from = performance.now();
  await later(plan.durationMs);
  const perSecond = (answered - before) / ((performance.now() - from) / 1000);
  for (const socket of sockets) socket.destroy();
  return { perSecond, answered };
}

async function watchStreams(plan: StreamPlan): Promise<StreamResult> {
  const lags: number[] = [];
  const last = Buffer.from(plan.last);
  const complete = Array.from({ length: plan.clients }, async (_, index) => {
    const socket = connect(plan.port, '127.0.0.1');
    socket.write(`GET ${plan.path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    const opened = Promise.withResolvers<void>();
    const done = Promise.withResolvers<void>();
    socket.on('data', (bytes) => {
      opened.resolve();
      const chunk = Buffer.from(bytes);
      // Some clients measure; the others only look for the end, which is short and comes in one piece.
      if (index % 50 === 0) sampleLag(chunk, lags);
      if (chunk.includes(last)) done.resolve();
    });
    await opened.promise;
    return { socket, done: done.promise };
  });
  const clients: { readonly socket: Socket; readonly done: Promise<void> }[] = [];
  for (const client of complete) clients.push(await client);
  process.stdout.write('open\n');
  await Promise.all(clients.map(({ done }) => done));
  for (const { socket } of clients) socket.destroy();
  lags.sort((a, b) => a - b);
  const at = (share: number): number => lags[Math.floor((lags.length - 1) * share)] ?? NaN;
  return { lagMsP50: at(0.5), lagMsP99: at(0.99) };
}

function sampleLag(bytes: Buffer, lags: number[]): void {
  const now = Date.now();
  for (const [, timestamp] of bytes.toString('latin1').matchAll(/"stream":"stdout".*"timestamp":"([^"]+)"/gu))
    lags.push(now - Date.parse(timestamp ?? ''));
}

function later(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

const plan = JSON.parse(process.argv[2] ?? '') as LoadPlan;
const result = plan.kind === 'requests' ? await sendRequests(plan) : await watchStreams(plan);
process.stdout.write(`${JSON.stringify(result)}\n`);
process.exit(0);
