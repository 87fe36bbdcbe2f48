import { startServer } from '../support/server.ts';
import { describeCloneSecret } from './clone-secret.ts';

describeCloneSecret('serve', async (env) => {
  const server = await startServer({ env });
  return { url: server.url, folder: server.dataDir, output: () => server.output(), stop: () => server.stop() };
});
