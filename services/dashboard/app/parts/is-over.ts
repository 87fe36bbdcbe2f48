import type { RunStatus } from '../api/operations.ts';

export function isOver(status: RunStatus): boolean {
  return !['PENDING', 'QUEUED', 'RUNNING'].includes(status);
}
