export type { Backups, BackupState } from './admin/backups.ts';
export { gatewayCollections } from './collections.ts';
export { runGatewayService } from './service.ts';
export { startGateway, type RunningGateway } from './start.ts';
export { storedSessions } from './stored-sessions.ts';
