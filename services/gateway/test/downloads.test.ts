import { connect, type AddressInfo } from 'node:net';
import { buildServer } from '@penstock/http';
import { Callers } from '@penstock/identity';
import { newRunId, type RunView } from '@penstock/run';
import { silentLog } from '@penstock/telemetry/log';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { addArtifactRoutes, type ArtifactRouteOptions } from '../src/artifacts/routes.ts';
import { OpenPlaces } from '../src/sse/open-places.ts';

const RUN_ID = newRunId({ now: Date.now(), key: 'service/demo', random: Buffer.alloc(10) });
const PATH = `/pipeline/${RUN_ID}/artifacts/build/a.txt`;
const FILE = { path: 'a.txt', sizeBytes: 2, sha256: 'a'.repeat(64), executable: false };
const RUN = { id: RUN_ID, tenant: 'service', finishedAt: null, stages: [{ name: 'build', artifacts: {} }] };

const app = buildServer({ corsOrigins: [], connectionsMax: 100, log: silentLog });
const asked = Promise.withResolvers<void>();
/** Until then the run is looked for. */
const found = Promise.withResolvers<void>();

beforeAll(async () => {
  addArtifactRoutes(app, {
    callers: new Callers({ publicRead: true }),
    tickets: { isTicket: () => false },
    people: { namesOf: async () => [] },
    reads: {
      view: async () => {
        asked.resolve();
        await found.promise;
        return RUN as unknown as RunView;
      },
    },
    kept: {
      of: async () => [FILE],
      async *read() {
        yield Buffer.from('hi');
      },
    },
    downloads: new OpenPlaces({ what: 'downloads', max: 1, perUserMax: 1 }),
  } as unknown as ArtifactRouteOptions);
  await app.listen({ host: '127.0.0.1', port: 0 });
});
afterAll(() => app.close());

it('who hangs up while the run is looked for leaves no place of a download taken', async () => {
  const closed = new Promise<void>((resolve) => {
    app.server.once('request', (_request, response) => response.once('close', resolve));
  });
  const { port } = app.server.address() as AddressInfo;
  const leaving = connect(port, '127.0.0.1');
  leaving.write(`GET ${PATH} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  await asked.promise;
  leaving.destroy();
  await closed;
  found.resolve();
  const answer = await fetch(`http://127.0.0.1:${port}${PATH}`);
  expect([answer.status, await answer.text()]).toEqual([200, 'hi']);
});
