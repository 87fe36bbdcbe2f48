/** Runs as a take-over finds them: their events so far, restored. */
import type { RunCreated, RunEvent, RunSettings } from '@penstock/run';
import { newRunId } from '@penstock/run';
import { LiveRun } from '@penstock/scheduler/testing';
import { definitions, NOW, settings } from './support.ts';

let count = 0;

export function createdOf(
  yaml: string,
  more: Partial<RunCreated> = {},
): {
  restored(events: readonly RunEvent[], own?: RunSettings): LiveRun;
  unrestorable(events: readonly RunEvent[]): LiveRun;
} {
  const created: RunCreated = {
    type: 'run_created',
    at: NOW,
    tenant: 'ada',
    key: 'ada',
    pipelineName: 'ship',
    yaml,
    priority: 0,
    origin: { kind: 'api' },
    ...more,
  };
  const id = newRunId({ now: NOW, key: 'ada', random: Uint8Array.of(1, 0, 0, 0, 0, 0, ++count >> 8, count & 255) });
  return {
    restored: (events, own = settings) =>
      LiveRun.restore(id, definitions.find(yaml).definition, { events: [created, ...events], sequence: 0 }, own),
    unrestorable: (events) =>
      LiveRun.unrestorable(
        id,
        { events: [created, ...events], sequence: 0 },
        settings,
        'this build does not know its text',
      ),
  };
}
