export * from './errors.ts';
export { answerMalformed } from './malformed.ts';
export { JSON_TYPE, SECURITY_HEADERS } from './headers.ts';
export { silentLog, type HttpLog } from './log.ts';
export { BODY_BYTES_MAX, buildServer, pathOf, type ServerOptions } from './server.ts';
