/** Handles ^C and its like during a local run: the first one asks the run to end, the second one does not ask. */
import { constants } from 'node:os';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

export interface InterruptHandlers {
  first(signal: NodeJS.Signals): void;
  /** Called for the second signal and every one after it. */
  again(signal: NodeJS.Signals): void;
}

/** Listens until the process ends. */
export class Interrupts {
  /** 128 and the number of the first signal; undefined where none came. */
  exitCode: number | undefined;

  constructor(handlers: InterruptHandlers) {
    for (const signal of SIGNALS) {
      process.on(signal, () => {
        const isFirst = this.exitCode === undefined;
        this.exitCode ??= 128 + constants.signals[signal];
        if (isFirst) handlers.first(signal);
        else handlers.again(signal);
      });
    }
  }
}

/**
 * Ends this process by the signal itself. `process.exit` would wait for a write to a terminal that takes nothing (^S),
 * and whoever started us sees what happened.
 */
export function dieOf(signal: NodeJS.Signals): void {
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
}
