/** The runner's logic by itself, for the simulation (`@penstock/runner/testing`). Production starts the whole of it through `index.ts`. */
export { Attempt } from './attempt/attempt.ts';
export { RunnerService } from './runner.ts';
export type { Chunks, RunnerPorts } from './runner-ports.ts';
export type { ResultLines } from './report/result-file.ts';
export { StageArtifacts, type LeftFiles } from './artifacts/stage-artifacts.ts';
export { StorageCalls } from './artifacts/storage-calls.ts';
export { storageByBus, type StorageLine } from './artifacts/storage-line.ts';
export { KeptArchives } from './caches/stage-caches.ts';
