export { createLogger, type Logger, type LogLevel, silentLogger } from './logger.ts';
