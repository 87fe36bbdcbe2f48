/** The gateway keeps nothing of the runs; it keeps only which stream tickets have been used. */
import type { CollectionSpec } from '@penstock/store';
import { ticketsSpec } from './sse/tickets.ts';

export const gatewayCollections: readonly CollectionSpec[] = [ticketsSpec];
