export { runScalerService } from './service.ts';
