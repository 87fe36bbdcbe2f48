/** A git host's API as far as commit statuses go: it keeps what it is told, in order. */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

interface ToldStatus {
  readonly path: string;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: Readonly<Record<string, string>>;
}

export interface FakeHost {
  readonly url: string;
  /** What was taken, in order. */
  readonly told: readonly ToldStatus[];
  /** Of commits: every state in the order in which it was taken. */
  statesOf(commit: string): readonly string[];
  /** Answered to the next requests, in place of taking them. */
  readonly answers: { readonly status: number; readonly headers?: Record<string, string> }[];
  /** Requests whose paths begin so are not answered until this is called. */
  hold(path: string): { readonly held: () => number; release(): void };
  close(): Promise<void>;
}

export async function startFakeHost(): Promise<FakeHost> {
  const told: ToldStatus[] = [];
  const answers: FakeHost['answers'] = [];
  const holds: { readonly path: string; readonly released: PromiseWithResolvers<void>; count: number }[] = [];
  const heldAt = async (path: string): Promise<void> => {
    const hold = holds.find((each) => path.startsWith(each.path));
    if (hold === undefined) return;
    hold.count += 1;
    await hold.released.promise;
  };
  const server = createServer((request, response) => {
    void bodyOf(request).then(async (body) => {
      await heldAt(request.url ?? '');
      const answer = answers.shift();
      if (answer === undefined)
        told.push({
          path: request.url ?? '',
          headers: request.headers,
          body: JSON.parse(body) as Record<string, string>,
        });
      response.writeHead(answer?.status ?? 201, { 'content-type': 'application/json', ...answer?.headers });
      response.end('{}');
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    told,
    answers,
    statesOf: (commit) => told.filter(({ path }) => path.endsWith(commit)).map(({ body }) => body['state'] ?? ''),
    hold: (path) => {
      const hold = { path, released: Promise.withResolvers<void>(), count: 0 };
      holds.push(hold);
      const release = (): void => {
        holds.splice(holds.indexOf(hold), 1);
        hold.released.resolve();
      };
      return { held: () => hold.count, release };
    },
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
