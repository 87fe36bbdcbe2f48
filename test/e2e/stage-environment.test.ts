/** What an operator gives every stage: a proxy, an authority of one's own (`SERVICE_STAGE_ENV`). */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startServer, TRIGGER, type RunningServer } from '../support/server.ts';
import { readStream } from '../support/sse.ts';
import { until } from '../support/wait.ts';

const YAML = `
pipeline: {name: lent}
stages:
  a: {run: 'echo "proxy <$HTTPS_PROXY> besides <$NO_PROXY> own <$UNNAMED>"'}
  b: {env: {HTTPS_PROXY: of the stage}, run: 'echo "says <$HTTPS_PROXY>"'}
`;

let server: RunningServer;

beforeAll(async () => {
  server = await startServer({
    env: {
      SERVICE_STAGE_ENV: 'HTTPS_PROXY, NO_PROXY, LACKING_HERE',
      HTTPS_PROXY: 'http://proxy.example:3128',
      NO_PROXY: 'a.example,b.example',
      UNNAMED: "the server's",
    },
  });
}, 90_000);
afterAll(async () => await server?.stop());

it('a stage finds the variables that the operator named, what it says itself stands above, and no others come', async () => {
  const { data } = await server.graphql<{ triggerPipeline: { run: { id: string; status: string } } }>(TRIGGER, {
    yaml: YAML,
    waitSeconds: 60,
  });
  const { id, status } = data.triggerPipeline.run;
  expect(status).toBe('SUCCESS');
  const log = JSON.stringify(await readStream(`${server.url}/pipeline/${id}/logs`, server.apiKey));
  expect(log).toContain('proxy <http://proxy.example:3128> besides <a.example,b.example> own <>');
  expect(log).toContain('says <of the stage>');
  await until('what is not set is named', () => Promise.resolve(server.output().includes('LACKING_HERE')));
}, 120_000);
