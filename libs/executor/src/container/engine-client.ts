/** Calls to a container engine: HTTP over its socket, the API of Docker, which podman speaks too. Every call has a deadline. */
import type Http from 'node:http';
import { EngineFailed } from './errors.ts';

export interface EngineCall {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** With its version, and its query encoded. */
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface EngineAnswer {
  readonly status: number;
  /** At most ANSWER_BYTES_MAX of it. */
  readonly text: string;
}

/** Engines answer in milliseconds; a disk that is slow to remove a large container takes longer. */
const CALL_MS_MAX = 60_000;
/** The description of an image or container takes some ten kilobytes. */
const ANSWER_BYTES_MAX = 4 * 1024 * 1024;
const SOCKETS_MAX = 64;
const COMPLAINT_CHARACTERS_MAX = 500;

/** Not imported: that would load `fetch` and all it needs, a quarter of what `penstock run` takes, for whoever has no engine too. */
const http = (): typeof Http => process.getBuiltinModule('node:http');

export class EngineClient {
  readonly #socketPath: string;
  readonly #agent: Http.Agent = new (http().Agent)({ keepAlive: true, maxSockets: SOCKETS_MAX });

  constructor(socketPath: string) {
    this.#socketPath = socketPath;
  }

  /** Throws EngineFailed where there is no answer in time; any status is an answer. */
  async call(call: EngineCall): Promise<EngineAnswer> {
    let text = '';
    const status = await this.read(call, (data) => {
      if (text.length < ANSWER_BYTES_MAX) text += data.toString('utf8');
    });
    return { status, text };
  }

  /** The answer as JSON. Throws EngineFailed for a status that is none of `wanted`. */
  async json(call: EngineCall, wanted: readonly number[] = [200, 201]): Promise<unknown> {
    const { status, text } = await this.call(call);
    if (!wanted.includes(status))
      throw new EngineFailed(`${call.method} ${pathOnly(call)}: ${complaintOf(status, text)}`, status);
    return text.trim() === '' ? null : JSON.parse(text);
  }

  /** An answer that goes on for long: each line of it as it comes. */
  async lines(call: EngineCall, onLine: (line: string) => void): Promise<EngineAnswer> {
    let rest = '';
    let first = '';
    const status = await this.read(call, (data) => {
      if (first.length < COMPLAINT_CHARACTERS_MAX) first += data.toString('utf8');
      const lines = (rest + data.toString('utf8')).split('\n');
      rest = (lines.pop() ?? '').slice(-ANSWER_BYTES_MAX);
      for (const line of lines) onLine(line);
    });
    if (rest !== '') onLine(rest);
    return { status, text: first };
  }

  close(): void {
    this.#agent.destroy();
  }

  /** An answer without an end that is known: its bytes as they come. Answers the status. */
  read(call: EngineCall, onData: (data: Buffer) => void): Promise<number> {
    const { method, path, body, headers, timeoutMs = CALL_MS_MAX, signal } = call;
    const text = body === undefined ? undefined : JSON.stringify(body);
    return new Promise<number>((resolve, reject) => {
      const fail = (error: Error): void => {
        clearTimeout(deadline);
        reject(
          signal?.aborted === true
            ? (signal.reason as Error)
            : new EngineFailed(`${method} ${pathOnly(call)}: ${error.message}`, 0),
        );
      };
      const request = http().request(
        {
          socketPath: this.#socketPath,
          agent: this.#agent,
          method,
          path,
          signal,
          headers: {
            ...headers,
            ...(text === undefined
              ? {}
              : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
          },
        },
        (response: Http.IncomingMessage) => {
          response.on('data', onData);
          response.once('error', fail);
          response.once('end', () => {
            clearTimeout(deadline);
            resolve(response.statusCode ?? 0);
          });
        },
      );
      const deadline = setTimeout(() => request.destroy(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
      request.once('error', fail);
      request.end(text);
    });
  }
}

export function complaintOf(status: number, text: string): string {
  try {
    const { message, cause } = JSON.parse(text) as { message?: unknown; cause?: unknown };
    const said = typeof message === 'string' ? message : cause;
    if (typeof said === 'string' && said !== '') return said.slice(0, COMPLAINT_CHARACTERS_MAX);
  } catch {
    // It is no JSON.
  }
  return `status ${status}${text === '' ? '' : `: ${text.slice(0, COMPLAINT_CHARACTERS_MAX).trim()}`}`;
}

function pathOnly({ path }: EngineCall): string {
  return path.split('?', 1)[0] ?? path;
}
