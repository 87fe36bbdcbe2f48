/** The "runner" of the tests that kill and freeze it: an executor, perhaps a guard, and stages that never end. */
import { bootClockMs, Guard, ProcessExecutor, SandboxExecutor } from '../src/index.ts';

const [mark = '', guarded, deadlineMs = '0', leftovers = '', kind] = process.argv.slice(2);
const leftoversFile = leftovers === '' ? undefined : leftovers;
const guard = guarded === 'guarded' ? new Guard() : undefined;
const executor =
  kind === 'sandbox'
    ? new SandboxExecutor({ layout: { keep: process.cwd(), hidden: [], paths: [] }, guard, leftoversFile })
    : new ProcessExecutor({ guard, leftoversFile });

function say(message: Record<string, unknown>): void {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

let up = 0;
// Said by the daemon: what is forked has the environment of the stage only once it is another program.
const script =
  'trap "" TERM HUP INT; (setsid sh -c "trap \\"\\" TERM HUP; echo up; sleep 600" &) ; while :; do sleep 1; done';
const stages = ['one', 'two'].map((helperKey) =>
  executor.start(
    { helperKey, commands: [{ script, bindings: {} }], env: { OWNER_MARK: mark }, cwd: '/', timeoutMs: 600_000 },
    {
      write: async (stream) => {
        if (stream !== 'stdout') return;
        up += 1;
        if (up !== 2) return;
        // Not before they run, however long that takes.
        if (guard !== undefined && deadlineMs !== '0') await guard.setDeadline(bootClockMs() + Number(deadlineMs));
        say({ up: true, guard: guard?.identity.pid });
      },
    },
  ),
);
void Promise.all(stages.map((stage) => stage.ended)).then(async (exits) => {
  const later = executor.start(
    { helperKey: 'one', commands: [{ script: 'echo ran >&2', bindings: {} }], env: {}, cwd: '/', timeoutMs: 600_000 },
    { write: () => say({ ran: true }) },
  );
  say({ exits, later: await later.ended });
});
if (guard !== undefined) void guard.gone.then((why) => say({ guardGone: why }));
setInterval(() => {}, 60_000);
