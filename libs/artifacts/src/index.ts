export { type Collection, collectFiles, type CollectOptions } from './collect/collection.ts';
export { moveInto, packCache, unpackCache, type PackedFiles } from './cache/caches.ts';
export { pickCached } from './cache/pick-cached.ts';
export {
  restoreCaches,
  saveCaches,
  type CachedStage,
  type CacheSource,
  type CacheTarget,
  type CacheToSave,
} from './cache/stage-caches.ts';
export { LINE_IDLE_MS_MAX, LINE_KEY_BYTES, LINE_TLS } from './direct/line-security.ts';
export { DirectWay, DirectWayBroken } from './direct/direct-way.ts';
export { readContent } from './direct/read-content.ts';
export { ArtifactsFailed } from './errors.ts';
export { letGo } from './let-go.ts';
export { decodeManifest, encodeManifest, type KeptFile, MANIFEST_BYTES_MAX, pathFault } from './manifest.ts';
export { TEST_STATUSES, type TestCase, testCaseOf, type TestStatus } from './reports/test-case.ts';
export { readReport, type TestReport } from './reports/read-report.ts';
export { type NotTaken, notTakenTogether } from './collect/not-taken.ts';
export { pickPaths } from './collect/pick.ts';
export { isKeptAfter, keptLine, leftOutLines, nothingMatchesLine } from './stage-rules.ts';
export { unpackFiles } from './unpack.ts';
export { PART_BYTES } from './messages.ts';
export type * from './messages.ts';
