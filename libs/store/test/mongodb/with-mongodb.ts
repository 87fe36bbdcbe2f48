/** Tests that need a server of MongoDB's protocol: run on the first that is found, else told as not run. */
import { afterAll, expect, it } from 'vitest';
import { reportNotRun, startMongoServer, type TestMongoServer } from './mongodb-server.ts';

/** To be awaited at the top of a test file; one server for all tests of the file. `what` is for the list of what was not run. */
export async function withMongoServer(what: string, define: (server: TestMongoServer) => void): Promise<void> {
  const server = await startMongoServer();
  const isMissing = 'missing' in server;
  // Stands in the report as skipped where there is none, so that the file is never silently empty.
  it.skipIf(isMissing)('finds a server of MongoDB’s protocol', () => expect(server).toHaveProperty('url'));
  afterAll(() => ('missing' in server ? undefined : server.stop()));
  if ('missing' in server) reportNotRun(`${what}: ${server.missing}`);
  else define(server);
}
