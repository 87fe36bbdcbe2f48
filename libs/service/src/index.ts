export { runService, runServiceWithoutBroker } from './service.ts';
export { answerCalls, answerOf, askService, callService, type CallAnswer, valueOf } from './service-calls.ts';
export { forgetCompiled, giveBackWhenIdle } from './idle-memory.ts';
export { machineMemory } from './machine-memory.ts';
export { allAnswer } from './readiness.ts';
export { countPeers } from './peers.ts';
export { HTTP_KEYS, httpSettings } from './http-settings.ts';
