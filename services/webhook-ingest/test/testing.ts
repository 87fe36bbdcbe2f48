/** For the tests of the whole: repositories that are pushed to, the payloads of such pushes, a git host that takes statuses. */
export * from './repository.ts';
export * from './fake-host.ts';
