/** The statuses of runs and stages, and the colour that each has wherever it is shown. */
import type { RunStatus } from '@penstock/run';
import type { Color } from './painter.ts';

const STATUS_COLORS: Readonly<Record<RunStatus, Color>> = {
  PENDING: 'dim',
  QUEUED: 'dim',
  RUNNING: 'cyan',
  SUCCESS: 'green',
  FAILED: 'red',
  SKIPPED: 'dim',
  CANCELLED: 'yellow',
};

export const RUN_STATUSES: readonly string[] = Object.keys(STATUS_COLORS);

/** A newer server's status, which this command does not know, stands out. */
export function statusColor(status: string): Color {
  return (Object.hasOwn(STATUS_COLORS, status) ? STATUS_COLORS[status as RunStatus] : undefined) ?? 'bold';
}
