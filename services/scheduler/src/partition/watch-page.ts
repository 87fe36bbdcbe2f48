/** One answer to `watch`: a run's committed events behind a version, as many as a message carries with ease. */
import type { WatchedRun } from '@penstock/bus';
import type { RunEvent, Version } from '@penstock/run';
import type { LiveRun } from '../run/live-run.ts';

/** Of events in one answer; more is asked for again. */
const PAGE_BYTES_MAX = 384 * 1024;

export function watchPage(run: LiveRun, after: Version): WatchedRun {
  const events: RunEvent[] = [];
  let bytes = 0;
  for (let version = after; version < run.committedVersion && bytes < PAGE_BYTES_MAX; version++) {
    const event = run.events[version] as RunEvent;
    const size = sizeOf(event);
    // One of them alone may be nearly all that a message carries.
    if (events.length > 0 && size > PAGE_BYTES_MAX) break;
    events.push(event);
    bytes += size;
  }
  return {
    tenant: run.state.tenant,
    version: run.committedVersion,
    events,
    more: after + events.length < run.committedVersion,
  };
}

/** Roughly, in bytes: enough to bound an answer. */
function sizeOf(event: RunEvent): number {
  if (event.type === 'run_created')
    return (
      200 + event.yaml.length + (event.extensions ?? []).reduce((sum, { manifest }) => sum + manifest.length + 200, 0)
    );
  // What a rerun takes over may be much more than anything else that one event says.
  if (event.type === 'stages_adopted') return Buffer.byteLength(JSON.stringify(event.adopted));
  return (
    160 +
    ('outputs' in event && event.outputs !== undefined ? JSON.stringify(event.outputs).length : 0) +
    (event.type === 'stages_added' ? JSON.stringify(event.text).length : 0) +
    ('stages' in event ? event.stages.reduce((sum, name) => sum + name.length + 3, 0) : 0)
  );
}
