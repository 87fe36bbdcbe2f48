export { OWNER_MS_MAX, OwnerRefused, Owners } from './owners.ts';
export { waitForRunEnd, type RunEndSources, type RunEndWait } from './run-end.ts';
export { RunReads, unavailableStore } from './run-reads.ts';
