/**
 * The one interface by which every package logs: the logger of this package fits it, and so does `silentLog`. It stands apart
 * (`@penstock/telemetry/log`), so that a package that only takes a log does not load the logger. Who needs less says
 * `Pick<Log, 'warn'>`. An error goes under `err`; the logger writes everything that caused it.
 */
export interface Log {
  debug(fields: Record<string, unknown>, message: string): void;
  info(fields: Record<string, unknown>, message: string): void;
  warn(fields: Record<string, unknown>, message: string): void;
  error(fields: Record<string, unknown>, message: string): void;
}

/** Writes nothing: for tests, and where the caller gave no log. */
export const silentLog: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
