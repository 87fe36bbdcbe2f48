export { type ByteRange, namesTag, rangeOf } from './byte-range.ts';
export { clientKeyOf } from './client-address.ts';
export { closeWithin } from './close-within.ts';
export { answerMalformed } from './malformed.ts';
export { JSON_TYPE, SECURITY_HEADERS } from './headers.ts';
export { newIdHeader } from './request-ids.ts';
export { type RateLimits } from './rate-limits.ts';
export { routesOf } from './routes.ts';
export { buildServer, type ServerOptions } from './server.ts';
