/**
 * Folders that tests have made and may use to their end, by more than one process in turn: vitest removes them after each file
 * (`remove-made-folders.ts`), a benchmark when it exits. Vitest ends its workers without `exit`.
 */
import { mkdtempSync, rmSync } from 'node:fs';

const made = new Set<string>();
let removesAtEnd = false;

export function removeMadeFolders(): void {
  for (const path of made) {
    try {
      rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    } catch (error) {
      // Of a server that its test has left running: that is what is to be seen, and no failure of the tests before.
      process.emitWarning(`a folder of a test stays: ${String(error)}`);
    }
  }
  made.clear();
}

/** `prefix` with its path. */
export function madeFolder(prefix: string): string {
  if (!removesAtEnd) process.once('exit', removeMadeFolders);
  removesAtEnd = true;
  const path = mkdtempSync(prefix);
  made.add(path);
  return path;
}
