export { runRestore } from './run-restore.ts';
export { runServe } from './run-serve.ts';
