/** An event of a run's stream, as a server sent it: one that this command knows, whose fields are what it takes them for. */
import { isPublicEventType, type PublicEvent } from '@penstock/run/public-events';
import { fieldOf } from './json.ts';

const TEXTS = ['stage', 'status', 'stream', 'line', 'logs', 'reason', 'by', 'decision', 'comment'];
const NUMBERS = ['attempt', 'exitCode', 'approved', 'quorum'];
const COUNTS = ['passed', 'failed', 'skipped'];

export function isPublicEvent(event: unknown): event is PublicEvent {
  const [type, timestamp] = [fieldOf(event, 'type'), fieldOf(event, 'timestamp')];
  if (typeof type !== 'string' || !isPublicEventType(type)) return false;
  if (typeof timestamp !== 'string' || Number.isNaN(Date.parse(timestamp))) return false;
  if (type.startsWith('stage_') && typeof fieldOf(event, 'stage') !== 'string') return false;
  if (type === 'stage_log' && typeof fieldOf(event, 'line') !== 'string') return false;
  if (type === 'stages_added' && !Array.isArray(fieldOf(event, 'stages'))) return false;
  const tests = fieldOf(event, 'tests');
  return (
    TEXTS.every((name) => isAbsent(fieldOf(event, name)) || typeof fieldOf(event, name) === 'string') &&
    NUMBERS.every((name) => isAbsent(fieldOf(event, name)) || typeof fieldOf(event, name) === 'number') &&
    (isAbsent(tests) || COUNTS.every((name) => typeof fieldOf(tests, name) === 'number'))
  );
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null;
}
