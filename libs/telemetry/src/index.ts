export { createLogger, type Logger, type LogLevel, silentLogger } from './logger.ts';
export { endStandardError } from './standard-error.ts';
