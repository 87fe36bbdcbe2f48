/**
 * What a server is started with so that it takes no more memory than it needs (docs/adr/0075-memory-of-a-server.md). Whoever sets one
 * of these himself is asked.
 */
const SERVERS = ['serve', 'service', 'runner'];
/** Of a thread that has no bound of its own; it takes twice as much. With 16 MiB `serve` takes some 13 MB more after 10,000 runs, and no run or log is faster. */
const YOUNG = '--max-semi-space-size=8';

/** `penstock.sh` and `deploy/Dockerfile` have the same. `command`: the first argument. */
export function withBoundedMemory(env, command) {
  if (!SERVERS.includes(command)) return env;
  return {
    // Or each of a dozen threads keeps what it has freed for itself.
    MALLOC_ARENA_MAX: '2',
    MALLOC_TRIM_THRESHOLD_: '131072',
    ...env,
    // The last one counts.
    NODE_OPTIONS: [YOUNG, env.NODE_OPTIONS].filter(Boolean).join(' '),
  };
}
