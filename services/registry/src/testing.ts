/** The registry's parts, for tests and benchmarks that run it without its process. */
export { extensionsSpec } from './catalogue/collections.ts';
export { extensionKey } from './catalogue/names.ts';
export type { ExtensionRecord } from './catalogue/records.ts';
export { Registry } from './operations/registry.ts';
export { LogArchiveService } from './archive/log-archive-service.ts';
export { Grants } from './artifacts/grants.ts';
export { IncomingUploads } from './artifacts/incoming.ts';
export { ArtifactKeeper } from './artifacts/keeper.ts';
export { askOwner, sweptRuns, type SweptRunsParts } from './artifacts/swept-runs.ts';
export { CacheKeeper } from './caches/cache-keeper.ts';
export { answerArtifactCalls } from './doors/artifact-calls.ts';
export { answerRunners, runnerVerbs } from './doors/runner-door.ts';
