export { runServe } from './run-serve.ts';
export { serve, type RunningServer, type ServeOptions } from './serve.ts';
export { DataFolderInUse } from './data-lock.ts';
export { apiKeyFile } from './keys.ts';
