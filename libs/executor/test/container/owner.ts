/** The "runner" of the tests that kill and freeze it: a container executor, perhaps a guard, and a stage with a service that never end. */
import { bootClockMs, Guard } from '../../src/index.ts';
import { ContainerExecutor } from '../../src/container/container-executor.ts';
import type { FoundEngine } from '../../src/container/find-engine.ts';
import { IMAGE } from '../../src/testing-containers/test-images.ts';

const [owner = '', found = '', guarded, deadlineMs = '0', leftovers = ''] = process.argv.slice(2);
const leftoversFile = leftovers === '' ? undefined : leftovers;
const engine = JSON.parse(found) as FoundEngine;
const user = process.getuid?.() === 0 ? { uid: 190_003, gid: 190_003 } : undefined;
const guard = guarded === 'guarded' ? new Guard() : undefined;
const executor = new ContainerExecutor({ engine, guard, owner, leftoversFile });

function say(message: Record<string, unknown>): void {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

const endless = 'trap "" TERM HUP INT; (setsid sleep 600 &); echo up; while :; do sleep 1; done';
const stage = executor.start(
  {
    helperKey: 'key',
    commands: [{ script: endless, bindings: {} }],
    env: { OWNER_MARK: owner },
    cwd: '/',
    user,
    timeoutMs: 600_000,
    place: {
      image: { name: IMAGE },
      services: [{ name: 'db', image: { name: IMAGE, entrypoint: ['sleep', '600'] }, env: { OWNER_MARK: owner } }],
    },
  },
  {
    write: async (stream) => {
      if (stream !== 'stdout') return;
      if (guard !== undefined && deadlineMs !== '0') await guard.setDeadline(bootClockMs() + Number(deadlineMs));
      say({ up: true, guard: guard?.identity.pid });
    },
  },
);
void stage.ended.then((exit) => say({ exit }));
if (guard !== undefined) void guard.gone.then((why) => say({ guardGone: why }));
setInterval(() => {}, 60_000);
