export { addDashboardRoutes } from './routes.ts';
