export { runRegistryService } from './service.ts';
