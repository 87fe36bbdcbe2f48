/** Command lines of children that inherit no descriptor but those that they are given. */
import { inheritableDescriptors } from './proc.ts';

export interface LaunchCommand {
  readonly file: string;
  readonly args: readonly string[];
}

/**
 * Descriptors that were left open to this process would reach every stage. Closing them takes a bash, as dash knows
 * one-digit numbers only.
 */
export function withoutStrayDescriptors(command: readonly string[]): LaunchCommand {
  // Those up to 6 are replaced by the child's own.
  const stray = inheritableDescriptors().filter((fd) => fd > 6);
  const [file = '', ...args] = command;
  if (stray.length === 0) return { file, args };
  return {
    file: 'bash',
    args: ['-c', `${stray.map((fd) => `exec ${fd}>&-`).join('; ')}; exec "$@"`, 'bash', ...command],
  };
}
