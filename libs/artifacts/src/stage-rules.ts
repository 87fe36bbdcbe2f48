/** What is the same wherever a stage's files are kept: on a server, and beside the folder that a run on this machine works in. */
import type { KeptWhen } from '@penstock/pipeline';
import type { Listing } from './reading/frames.ts';

/** Told one by one in the stage's log. */
const TOLD_MAX = 10;

/** Whether a stage that has ended so has its files kept. What was stopped, or lost, has ended without an end of its own. */
export function isKeptAfter(
  when: KeptWhen,
  { status, reason }: { readonly status: 'success' | 'failed'; readonly reason?: string | undefined },
): boolean {
  if (reason === 'cancelled' || reason === 'runner_lost') return false;
  return when === 'always' || (when === 'success') === (status === 'success');
}

/** Lines for the stage's log: what matches and is not taken, and why. */
export function leftOutLines({ leftOut, leftOutCount, folders }: Listing): string[] {
  const told = leftOut.slice(0, TOLD_MAX);
  const more = leftOutCount - told.length;
  return [
    ...told.map(({ path, why }) => `${JSON.stringify(path)} is not kept: ${why}`),
    ...(more > 0 ? [`${more} more are not kept`] : []),
    ...folders.slice(0, TOLD_MAX).map((path) => `${JSON.stringify(path)} is a folder; what is in it is '${path}/**'`),
  ];
}

export function nothingMatchesLine(paths: readonly string[]): string {
  return `no file matches 'artifacts' (${paths.slice(0, 3).join(', ')}${paths.length > 3 ? ', …' : ''}): nothing is kept`;
}

export function keptLine(files: number, bytes: number): string {
  return `kept ${filesText(files, bytes)}`;
}

/** `3 files (812 bytes)` */
export function filesText(files: number, bytes: number): string {
  return `${files} ${files === 1 ? 'file' : 'files'} (${bytes} bytes)`;
}
