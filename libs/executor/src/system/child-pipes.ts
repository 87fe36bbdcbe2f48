import type { ChildProcess } from 'node:child_process';

/** A process that has no file left for its child's pipes is told so by an event alone, and its child has none: false then. */
export function hasPipes(child: ChildProcess): boolean {
  child.once('error', () => {});
  return (child.stdio as unknown) !== undefined;
}
