export { buildGateway } from './app.ts';
export { startGateway, type RunningGateway, type StartGatewayOptions } from './main.ts';
export { silentLog, type GatewayLog, type GatewayOptions } from './ports.ts';
export { apiKeyAuthenticator, type Authenticator, type Caller } from './callers.ts';
export { runGatewayService } from './service.ts';
