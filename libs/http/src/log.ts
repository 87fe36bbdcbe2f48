/** Structured log, in the manner of pino. What is given to it never holds a token or a URL with a query. */
export interface HttpLog {
  info(fields: Record<string, unknown>, message: string): void;
  warn(fields: Record<string, unknown>, message: string): void;
  error(fields: Record<string, unknown>, message: string): void;
}

export const silentLog: HttpLog = { info: () => {}, warn: () => {}, error: () => {} };
