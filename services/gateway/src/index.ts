export { buildGateway } from './app.ts';
export { startGateway, type RunningGateway, type StartGatewayOptions } from './main.ts';
export type { GatewayOptions } from './ports.ts';
export { gatewayCollections } from './collections.ts';
export { apiKeyAuthenticator, type Authenticator, type Caller } from '@penstock/identity';
export { runGatewayService } from './service.ts';
export { storedSessions } from './stored-sessions.ts';
