export { runAuthService } from './service.ts';
