/**
 * The log of a process: JSON lines, or readable ones for a person. Errors go under `err`, with everything that caused
 * them. Credentials do not get into it (`redact.ts`); what may name one (a URL, a header) need not be picked out by the
 * caller. What is written while a request is served carries its id (`request.ts`).
 */
import { pino, type DestinationStream, type Logger as PinoLogger } from 'pino';
import { errorChain } from '@penstock/errors';
import { readableLine } from './readable-line.ts';
import { createRedact } from './redact.ts';
import { currentRequest } from './request.ts';

export type Logger = PinoLogger;
export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';

export interface LoggerOptions {
  /** Which service writes; `serve` gives each of its own. */
  readonly service: string;
  readonly level?: LogLevel | undefined;
  /** Default: readable where standard error is a terminal. */
  readonly format?: 'json' | 'readable' | undefined;
  /** Takes whole lines; default: standard error, written at once, so that the last words before a crash are there. */
  readonly destination?: { write(line: string): void } | undefined;
  /** Values that must not appear in any line: the API key, the broker's password. */
  readonly secrets?: readonly string[] | undefined;
}

/** Objects nested deeper are somebody's internals. */
const DEPTH_MAX = 6;
const EDGES_MAX = 200;

export function createLogger(options: LoggerOptions): Logger {
  const readable = (options.format ?? (process.stderr.isTTY ? 'readable' : 'json')) === 'readable';
  const colour = process.stderr.isTTY && options.destination === undefined && process.env['NO_COLOR'] === undefined;
  const redact = createRedact(options.secrets ?? []);
  const destination: DestinationStream = options.destination ?? standardError();
  return pino(
    {
      level: options.level ?? 'info',
      base: { service: options.service },
      mixin: requestFields,
      timestamp: pino.stdTimeFunctions.isoTime,
      depthLimit: DEPTH_MAX,
      edgeLimit: EDGES_MAX,
      serializers: { err: errorChain, error: errorChain },
    },
    {
      write(line) {
        const clean = redact(line);
        destination.write(readable ? readableLine(clean, { colour }) : clean);
      },
    },
  );
}

/** Standard error may be a file, and its disk full: what cannot be written is lost, nothing is thrown at who logs, and the next line is tried. */
function standardError(): DestinationStream {
  const open = (): ReturnType<typeof pino.destination> => {
    const stream = pino.destination({ dest: 2, sync: true });
    // One that has failed would keep every line from then on.
    stream.on('error', () => {
      if (current === stream) current = open();
    });
    return stream;
  };
  let current = open();
  return { write: (line) => current.write(line) };
}

/** Made anew for each line: it is written into. */
function requestFields(): { requestId?: string } {
  const request = currentRequest();
  return request === undefined ? {} : { requestId: request.id };
}

/** Writes nothing: for tests, and for libraries whose caller gave none. */
export function silentLogger(): Logger {
  return pino({ level: 'silent' });
}
