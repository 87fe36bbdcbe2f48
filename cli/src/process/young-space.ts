/**
 * A server is started with a bound for its young spaces (bootstrap/memory.js), which V8 puts before what each thread is given of its
 * own (`resourceLimits`): all had room for a loud log, whatever they do. Here, once the first thread has taken its bound, the others are
 * left theirs. Who has set another one means all threads.
 */
const OURS = '8';

/** Before anything is loaded: what Node keeps compiled is of the flags of that moment. */
export function leaveThreadsTheirYoungSpace(env: NodeJS.ProcessEnv): void {
  const [, last] = /^.*--max-semi-space-size=(\d+)/u.exec(env['NODE_OPTIONS'] ?? '') ?? [];
  if (last === OURS) process.getBuiltinModule('node:v8').setFlagsFromString('--max-semi-space-size=0');
}
