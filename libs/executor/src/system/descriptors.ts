/** Command lines of children that inherit no descriptor but those that they are given. */
import { inheritableDescriptors } from './proc.ts';

export interface LaunchCommand {
  readonly file: string;
  readonly args: readonly string[];
}

/** Looked for once: what this process opens itself is closed by the kernel when a child becomes another program. */
let given: readonly number[] | undefined;

/**
 * Descriptors that were left open to this process would reach every stage. Closing them takes a bash, as dash knows
 * one-digit numbers only. Those up to `ownMax` are replaced by the child's own.
 */
export function withoutStrayDescriptors(command: readonly string[], ownMax = 6): LaunchCommand {
  given ??= inheritableDescriptors();
  const stray = given.filter((fd) => fd > ownMax);
  const [file = '', ...args] = command;
  if (stray.length === 0) return { file, args };
  return {
    file: 'bash',
    args: ['-c', `${stray.map((fd) => `exec ${fd}>&-`).join('; ')}; exec "$@"`, 'bash', ...command],
  };
}
