/** The public face of the package: pipeline files of strangers, read on another thread. */
export { ParsePool } from './parse-pool.ts';
export type { ParsePoolOptions } from './parse-pool.ts';
export {
  isReadAtOnce,
  manifestOffThread,
  parsePipelineOffThread,
  usesOffThread,
  warmParseThread,
} from './shared-pool.ts';
