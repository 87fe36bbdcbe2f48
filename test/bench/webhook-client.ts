/** The load of the webhook benchmark, in a process of its own: one push over and over, each with another delivery id. Prints one line of JSON. */
import { connect } from 'node:net';

export interface WebhookPlan {
  readonly port: number;
  /** By turns; each with its headers but for the delivery's id. */
  readonly pushes: readonly { readonly body: string; readonly headers: readonly string[] }[];
  readonly connections: number;
  /** Looked at, after some seconds of warming up. */
  readonly durationMs: number;
  /** With so many it ends before its time: the server takes no more until some are processed. Default: as many as can be. */
  readonly pushesMax?: number | undefined;
}

export interface WebhookLoad {
  readonly perSecond: number;
  readonly seconds: number;
  /** In each third of the time. */
  readonly thirds: readonly number[];
  readonly msP50: number;
  readonly msP99: number;
}

/** What happens before is the warming up of both sides. */
const WARM_MS_MAX = 3_000;
const HEAD_END = '\r\n\r\n';

async function send(plan: WebhookPlan): Promise<WebhookLoad> {
  const prefix = `${process.pid}-${Date.now()}`;
  const tails = plan.pushes.map(
    ({ body, headers }) =>
      `${headers.join('\r\n')}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  let next = 0;
  let counting = false;
  const times: number[] = [];
  const all = Promise.withResolvers<void>();
  const sockets = Array.from({ length: plan.connections }, () => {
    const socket = connect(plan.port, '127.0.0.1');
    let received = '';
    let sentAt = 0;
    const request = (): void => {
      if (next === plan.pushesMax) return all.resolve();
      next += 1;
      sentAt = performance.now();
      socket.write(
        `POST /webhook HTTP/1.1\r\nHost: localhost\r\nX-GitHub-Event: push\r\nX-GitHub-Delivery: ${prefix}-${next}\r\n${tails[next % tails.length] ?? ''}`,
      );
    };
    socket.setEncoding('latin1').on('data', (text) => {
      received += String(text);
      const end = received.indexOf(HEAD_END);
      if (end < 0) return;
      const length = Number(/content-length: (\d+)/iu.exec(received)?.[1]);
      if (received.length < end + HEAD_END.length + length) return;
      if (!received.startsWith('HTTP/1.1 200')) throw new Error(received);
      received = '';
      if (counting) times.push(performance.now() - sentAt);
      request();
    });
    request();
    return socket;
  });
  await later(Math.min(WARM_MS_MAX, plan.durationMs / 3));
  counting = true;
  const from = performance.now();
  const thirds: number[] = [];
  for (let third = 0; third < 3; third += 1) {
    const [before, start] = [times.length, performance.now()];
    await Promise.race([later(plan.durationMs / 3), all.promise]);
    thirds.push(((times.length - before) * 1000) / (performance.now() - start));
  }
  const seconds = (performance.now() - from) / 1000;
  for (const socket of sockets) socket.destroy();
  times.sort((a, b) => a - b);
  const at = (share: number): number => times[Math.floor((times.length - 1) * share)] ?? Number.NaN;
  return { perSecond: times.length / seconds, seconds, thirds, msP50: at(0.5), msP99: at(0.99) };
}

function later(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

process.stdout.write(`${JSON.stringify(await send(JSON.parse(await textOf(process.stdin)) as WebhookPlan))}\n`);
process.exit(0);

async function textOf(input: NodeJS.ReadStream): Promise<string> {
  let text = '';
  for await (const chunk of input) text += String(chunk);
  return text;
}
