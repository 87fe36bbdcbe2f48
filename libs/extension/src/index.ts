export * from './registry-messages.ts';
