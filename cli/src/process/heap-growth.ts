/**
 * V8 lets a small heap grow to four times what is in use before it looks for what nobody has any more: the engine's thread, with 33 MB
 * in use, to 117. A server's is looked through when half as much has come as was in use (docs/adr/0075-memory-of-a-server.md).
 */
const SERVERS = /(?:^|\s)--max-semi-space-size=/u;
const PERCENT = 50;

/** Before anything is loaded, as with the young space: what Node keeps compiled is of the flags of that moment. Of all threads. */
export function boundGrowthOfHeaps(env: NodeJS.ProcessEnv): void {
  // NODE_OPTIONS may not name it; that it bounds the young space says that a server is started (bootstrap/memory.js).
  if (!SERVERS.test(env['NODE_OPTIONS'] ?? '')) return;
  process.getBuiltinModule('node:v8').setFlagsFromString(`--heap-growing-percent=${PERCENT}`);
}
