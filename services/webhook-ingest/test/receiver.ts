/** Somebody's server that is told by webhooks: it keeps what it is sent, and answers as a test says. */
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';

export interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: {
    readonly type: string;
    readonly timestamp: string;
    readonly data: {
      readonly version: number;
      readonly run: { readonly id: string; readonly status: string };
      readonly stages: readonly { readonly name: string; readonly status: string }[];
    };
  };
}

export interface Receiver {
  readonly url: string;
  readonly received: Received[];
  /** What the next requests are answered with; undefined: no answer before the test is over. */
  answer: (
    received: Received,
  ) => number | undefined | { readonly status: number; readonly headers: Record<string, string> };
  /** The most requests of one run that were open at a time. */
  readonly atOnce: () => number;
  close(): Promise<void>;
}

export async function startReceiver(): Promise<Receiver> {
  const received: Received[] = [];
  const open = new Map<string, number>();
  let atOnce = 0;
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const text = Buffer.concat(parts).toString();
      const one = { headers: request.headers, text, body: JSON.parse(text) as Received['body'] };
      received.push(one);
      const { id } = one.body.data.run;
      open.set(id, (open.get(id) ?? 0) + 1);
      atOnce = Math.max(atOnce, open.get(id) ?? 0);
      const answer = receiver.answer(one);
      if (answer === undefined) return;
      // The next of the run may come only when this one is answered.
      setImmediate(() => {
        open.set(id, (open.get(id) ?? 0) - 1);
        if (typeof answer === 'number') response.writeHead(answer).end('thank you');
        else response.writeHead(answer.status, answer.headers).end();
      });
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const receiver: Receiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook?of=ours`,
    received,
    answer: () => 204,
    atOnce: () => atOnce,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return receiver;
}

/** By the library that receivers use. Throws where it refuses. */
export function verified({ text, headers }: Received, secret: string): unknown {
  return new Webhook(secret).verify(text, headers as Record<string, string>);
}
