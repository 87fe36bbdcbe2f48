export { CommittingSchedulers } from './committing.ts';
export { OwnerRefused, Owners } from './owners.ts';
export { readRunEvents, StoryDamaged } from './run-events.ts';
export { waitForRunEnd, type RunEndSources } from './run-end.ts';
export { RunReads, unavailableStore, type RunsPage } from './run-reads.ts';
