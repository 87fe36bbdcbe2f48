import { expect, it } from 'vitest';
import { GateNotes } from '../src/server/gate-notes.ts';
import { serverClient } from '../src/server/http-client.ts';
import { serverAddress } from '../src/server/server-address.ts';
import { fakeServer, RUN_ID } from './fake-server.ts';

it('what is said of a stage that waits can be copied into a shell, whatever the stage is called', async () => {
  const stage = { name: "it's; reboot", status: 'QUEUED', waitingOn: [{ kind: 'approval' }] };
  const { url } = await fakeServer({ graphql: () => ({ body: { data: { run: { stages: [stage] } } } }) });
  const client = serverClient(serverAddress(url, {}), { token: undefined, source: 'none' });
  const { promise: said, resolve } = Promise.withResolvers<string>();
  const notes = new GateNotes(client, RUN_ID, resolve);
  expect(await said).toContain(String.raw`penstock approve ${RUN_ID} 'it'\''s; reboot', or penstock reject`);
  notes.stop();
});
