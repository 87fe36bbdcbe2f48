/**
 * Runs the program that the bootstrap was for: same terminal, same exit code or signal, signals passed on.
 *
 * CHILD-1. This process outlives its child: a signal is handed on and the child decides when to end.
 * CHILD-2. On a terminal ^C reaches the child by itself (same process group), so SIGINT is then not sent a second time:
 *     programs take a second ^C as "at once".
 */
import { spawn } from 'node:child_process';
import { constants } from 'node:os';

const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'];

/** Resolves to `{ code, signal }` when the child has ended; rejects when it could not be started. */
export function runChild(file, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { stdio: 'inherit', ...options });
    const endPassing = passSignals(child);
    const settle = (deliver, value) => {
      endPassing();
      deliver(value);
    };
    child.once('error', (error) => settle(reject, error));
    child.once('exit', (code, signal) => settle(resolve, { code, signal }));
  });
}

/** CHILD-1, CHILD-2. Returns what ends it, and says which signal came first, if one did. */
export function passSignals(child) {
  const onTerminal = Boolean(process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY);
  let first;
  const handlers = FORWARDED.map((signal) => {
    const handler = () => {
      first ??= signal;
      if (!(onTerminal && (signal === 'SIGINT' || signal === 'SIGQUIT'))) child.kill(signal);
    };
    process.on(signal, handler);
    return [signal, handler];
  });
  return () => {
    for (const [signal, handler] of handlers) process.off(signal, handler);
    return first;
  };
}

/** Ends this process as the child ended. */
export function exitLike({ code, signal }) {
  if (signal) {
    process.kill(process.pid, signal);
    // A signal that does not end this process (one that the caller's shell ignores) must not turn into success.
    process.exit(128 + (constants.signals[signal] ?? 0));
  }
  process.exit(code ?? 1);
}
