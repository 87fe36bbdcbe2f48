/** For tests: what really is alive, seen through /proc. */
import { readdirSync, readFileSync } from 'node:fs';

/** Pids of living processes with this text in their environment. */
export function processesWith(mark: string): number[] {
  const found: number[] = [];
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      if (readFileSync(`/proc/${entry}/environ`, 'latin1').includes(mark)) found.push(Number(entry));
    } catch {
      // It has ended meanwhile, or is not ours.
    }
  }
  return found;
}
