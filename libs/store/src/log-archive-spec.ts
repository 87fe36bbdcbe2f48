/** The collection of pointers to archived logs; what they are is in `log-archive.ts`. */
import type { CollectionSpec } from './port.ts';

export const logArchiveSpec = {
  name: 'log_archive',
  fields: {
    tenant: 'string',
    pack: 'string',
    /** How many objects the pack has. */
    objects: 'integer',
    /** Of the run's frames, as they are stored. */
    bytes: 'integer',
    /** Milliseconds since 1970; a pointer that is rewritten keeps it. */
    archivedAt: 'integer',
    format: 'integer',
    generation: 'integer',
  },
  parts: ['frames'],
  indexes: [['pack'], ['archivedAt']],
  version: ['format', 'generation'],
} as const satisfies CollectionSpec;
