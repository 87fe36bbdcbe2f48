export { causesOf, errorChain, type LoggedError } from './cause-chain.ts';
export {
  BadUserInput,
  Conflict,
  ERROR_CODES,
  type ErrorCode,
  Forbidden,
  NotFound,
  QuotaExceeded,
  RateLimited,
  ServiceError,
  serviceErrorOf,
  Unauthenticated,
  Unavailable,
} from './service-error.ts';
export { systemReason } from './system-reason.ts';
export { TaggedError } from './tagged-error.ts';
