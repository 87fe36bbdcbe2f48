/**
 * The log of a process: JSON lines, or readable ones for a person. Errors go under `err`, with everything that caused
 * them. Credentials do not get into it (`redact.ts`); what may name one (a URL, a header) need not be picked out by the
 * caller. What is written while a request is served carries its id (`request.ts`).
 */
import { pino, type Logger as PinoLogger } from 'pino';
import { errorChain } from '@penstock/errors';
import { readableLine } from './readable-line.ts';
import { createRedact } from './redact.ts';
import { currentRequest } from './request.ts';
import { writeStandardError } from './standard-error.ts';

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
const WARN = 40;

export function createLogger(options: LoggerOptions): Logger {
  const readable = (options.format ?? (process.stderr.isTTY ? 'readable' : 'json')) === 'readable';
  const colour = process.stderr.isTTY && options.destination === undefined && process.env['NO_COLOR'] === undefined;
  const redact = createRedact(options.secrets ?? []);
  const shown = (line: string): string => (readable ? readableLine(line, { colour }) : line);
  const lostLine = (lost: number): string => {
    const time = new Date().toISOString();
    const line = {
      level: WARN,
      time,
      service: options.service,
      lost,
      msg: 'lines of this log were lost: nobody took them',
    };
    return shown(`${JSON.stringify(line)}\n`);
  };
  const destination = options.destination ?? { write: (line: string) => writeStandardError(line, lostLine) };
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
        destination.write(shown(clean));
      },
    },
  );
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
