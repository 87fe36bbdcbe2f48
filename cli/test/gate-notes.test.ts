import { expect, it } from 'vitest';
import { GateNotes } from '../src/server/gate-notes.ts';
import { serverClient } from '../src/server/http-client.ts';
import { serverAddress } from '../src/server/server-address.ts';
import { fakeServer, RUN_ID } from './fake-server.ts';

it.each([
  ["it's; reboot", String.raw`'it'\''s; reboot'`],
  ['--help', '-- --help'],
  ['-x y', "-- '-x y'"],
])('what is said of a stage that waits can be copied into a shell: %s', async (name, word) => {
  const stage = { name, status: 'QUEUED', waitingOn: [{ kind: 'approval' }] };
  const { url } = await fakeServer({ graphql: () => ({ body: { data: { run: { stages: [stage] } } } }) });
  const client = serverClient(serverAddress(url, {}), { token: undefined, source: 'none' });
  const { promise: said, resolve } = Promise.withResolvers<string>();
  const notes = new GateNotes(client, RUN_ID, resolve);
  expect(await said).toContain(`penstock approve ${RUN_ID} ${word}, or penstock reject ${RUN_ID} ${word}`);
  notes.stop();
});
