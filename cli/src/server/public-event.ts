/** An event of a run's stream, as a server sent it: one that this command knows, with the fields that it looks at. */
import { isPublicEventType, type PublicEvent } from '@penstock/run/public-events';
import { fieldOf } from './json.ts';

export function isPublicEvent(event: unknown): event is PublicEvent {
  const type = fieldOf(event, 'type');
  if (typeof type !== 'string' || !isPublicEventType(type) || typeof fieldOf(event, 'timestamp') !== 'string')
    return false;
  if (type.startsWith('stage_') && typeof fieldOf(event, 'stage') !== 'string') return false;
  return type !== 'stage_log' || typeof fieldOf(event, 'line') === 'string';
}
