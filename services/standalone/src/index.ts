export { runServe } from './run-serve.ts';
