export {
  retryUntilDone,
  runService,
  type RunningService,
  type ServiceContext,
  type ServiceDefinition,
} from './service.ts';
export { startInternalServer, type InternalServer, type InternalServerOptions } from './internal-server.ts';
export { answerCalls, callService, type CalledService } from './service-calls.ts';
export { countPeers, type PeerCount } from './peers.ts';
export { HTTP_KEYS, httpSettings } from './http-settings.ts';
