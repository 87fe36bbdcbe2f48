/** Stream tickets, and the end of log streams whose credential is revoked. */
import type { AddressInfo } from 'node:net';
import { personalTokenHash } from '@penstock/identity';
import { SignJWT } from 'jose';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { GatewayOptions } from '../src/ports.ts';
import { JWT_SECRET, type TestUser } from './fake-auth.ts';
import { API_KEY, graphql, happened, makeWorld, runIdFor, YAML, type World } from './harness.ts';
import { SseClient } from './sse-client.ts';

let world: World;
const clients: SseClient[] = [];
beforeAll(async () => {
  world = await makeWorld();
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  await world.reset();
});
afterAll(() => world.close());

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;

/** A gateway that listens, at a time that a test sets. */
async function gateway(
  clock: { at: number },
  options: Partial<GatewayOptions> = {},
): Promise<{
  readonly url: string;
  ticket(runId: string, token: string): Promise<string>;
  status(runId: string, ticket: string): Promise<number>;
}> {
  const app = await world.gateway({ now: () => clock.at, ...options });
  await app.listen({ host: '127.0.0.1', port: 0 });
  return {
    url: `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`,
    async ticket(runId, token) {
      const answer = await graphql(app, 'mutation ($id: String) { createStreamTicket(runId: $id) }', {
        token,
        variables: { id: runId },
      });
      expect(answer.errors).toEqual([]);
      return String(answer.data?.['createStreamTicket']);
    },
    status: async (runId, ticket) =>
      (await app.inject({ method: 'GET', url: `/pipeline/${runId}/logs?token=${ticket}` })).statusCode,
  };
}

async function watch(
  url: string,
  runId: string,
  token: string,
  by: 'header' | 'parameter' = 'parameter',
): Promise<SseClient> {
  const address = `${url}/pipeline/${runId}/logs`;
  const client =
    by === 'header' ? await SseClient.open(address, { token }) : await SseClient.open(`${address}?token=${token}`);
  clients.push(client);
  return client;
}

function runOf(user: TestUser): string {
  const id = runIdFor(`user/${user.id}`);
  world.owner.adopt(id, YAML, `user/${user.id}`);
  return id;
}

/** Ends the run now; it stays in its owner's memory. */
function finish(id: string): void {
  world.owner.commit(id, [
    happened.queued('build'),
    happened.started('build'),
    happened.completed('build'),
    happened.queued('test'),
    happened.started('test'),
    happened.completed('test'),
    happened.runCompleted(),
  ]);
}

describe('stream tickets', () => {
  it('TICKET-1: one opens the stream of its run on any gateway, and nothing else anywhere', async () => {
    const clock = { at: Date.now() };
    const [here, there] = [await gateway(clock), await gateway(clock)];
    const ada = await world.auth.login('ada');
    const [run, other] = [runOf(ada), runOf(ada)];
    const ticket = await here.ticket(run, ada.token);
    const client = await watch(there.url, run, ticket);
    expect(client.status).toBe(200);
    expect(await here.status(other, ticket)).toBe(401);
    const app = await world.gateway();
    expect((await graphql(app, '{ health }', { token: ticket })).errors[0]?.extensions['code']).toBe('UNAUTHENTICATED');
    expect(
      (await app.inject({ url: `/pipeline/${run}/logs`, headers: { authorization: `Bearer ${ticket}` } })).statusCode,
    ).toBe(401);
  });

  it('of an earlier JWT_SECRET is good while that is among them', async () => {
    const clock = { at: Date.now() };
    const ada = await world.auth.login('ada');
    const run = runOf(ada);
    const ticket = await (await gateway(clock)).ticket(run, ada.token);
    const next = 'a new secret for tests of thirty-two bytes or more';
    const during = await gateway(clock, { jwtSecret: `${next},${JWT_SECRET}` });
    expect((await watch(during.url, run, ticket)).status).toBe(200);
    expect(await (await gateway(clock, { jwtSecret: next })).status(run, ticket)).toBe(401);
  });

  it('made with a personal token that ends is over with it, and its stream too', async () => {
    const clock = { at: Date.now() };
    const here = await gateway(clock);
    const ada = await world.auth.login('ada');
    const run = runOf(ada);
    const token = world.auth.personalToken('ada', 'read');
    const kept = world.auth.tokens.get(personalTokenHash(token));
    if (kept !== undefined) kept.expiresAt = clock.at + 1_500;
    const ticket = await here.ticket(run, token);
    const client = await watch(here.url, run, ticket);
    expect(client.status).toBe(200);
    await client.ended;
    clock.at += 1_500;
    expect(await here.status(run, ticket)).toBe(401);
  });

  it('TICKET-2: one that nobody used within 60 s is refused, whichever gateway is asked', async () => {
    const clock = { at: Date.now() };
    const [here, there] = [await gateway(clock), await gateway(clock)];
    const ada = await world.auth.login('ada');
    const run = runOf(ada);
    const [early, late] = [await here.ticket(run, ada.token), await here.ticket(run, ada.token)];
    clock.at += MINUTE_MS;
    expect((await watch(there.url, run, early)).status).toBe(200);
    clock.at += 1;
    expect(await there.status(run, late)).toBe(401);
    expect(await here.status(run, late)).toBe(401);
    clock.at += 5 * MINUTE_MS;
    expect((await watch(here.url, run, early)).status).toBe(200);
  });

  it('TICKET-2: used once, one is good until 5 minutes after the end of its run', async () => {
    const clock = { at: Date.now() };
    const here = await gateway(clock);
    const ada = await world.auth.login('ada');
    const run = runOf(ada);
    const ticket = await here.ticket(run, ada.token);
    const client = await watch(here.url, run, ticket);
    finish(run);
    await client.ended;
    const endedAt = Date.now();
    clock.at = endedAt + 4 * MINUTE_MS;
    expect(await here.status(run, ticket)).toBe(200);
    clock.at = endedAt + 5 * MINUTE_MS + SECOND_MS;
    expect(await here.status(run, ticket)).toBe(401);
  });

  it('of a run that ended long ago one still shows the event stream, for 5 minutes', async () => {
    const clock = { at: Date.now() };
    const here = await gateway(clock);
    const ada = await world.auth.login('ada');
    const run = runOf(ada);
    finish(run);
    clock.at += 10 * MINUTE_MS;
    const ticket = await here.ticket(run, world.auth.personalToken('ada', 'read'));
    expect(await here.status(run, ticket)).toBe(200);
    clock.at += 4 * MINUTE_MS;
    expect(await here.status(run, ticket)).toBe(200);
    clock.at += 2 * MINUTE_MS;
    expect(await here.status(run, ticket)).toBe(401);
  });

  it('TICKET-3: one dies with the session or the personal token that made it, also long after the revocation was published', async () => {
    const clock = { at: Date.now() };
    const here = await gateway(clock);
    const ada = await world.auth.login('ada');
    const personal = world.auth.personalToken('ada', 'read');
    const run = runOf(ada);
    const tickets = { session: await here.ticket(run, ada.token), personal: await here.ticket(run, personal) };
    for (const ticket of Object.values(tickets)) expect((await watch(here.url, run, ticket)).status).toBe(200);
    clock.at += 30 * MINUTE_MS;
    // The bucket tells of the last minutes only: auth is asked.
    world.auth.asked.length = 0;
    const bySession = await watch(here.url, run, tickets.session);
    const byToken = await watch(here.url, run, tickets.personal);
    expect([bySession.status, byToken.status]).toEqual([200, 200]);
    expect(world.auth.asked).toEqual(expect.arrayContaining(['session', 'tokens.list']));
    await world.auth.logout(ada);
    await bySession.ended;
    await world.auth.revokeToken(personal);
    await byToken.ended;
    expect([await here.status(run, tickets.session), await here.status(run, tickets.personal)]).toEqual([401, 401]);
  });

  it('TICKET-3: one of a personal token is worth nothing while its user is suspended, long after that was published too', async () => {
    const clock = { at: Date.now() };
    const here = await gateway(clock);
    const ada = await world.auth.login('ada');
    const run = runOf(ada);
    const ticket = await here.ticket(run, world.auth.personalToken('ada', 'read'));
    expect((await watch(here.url, run, ticket)).status).toBe(200);
    clock.at += 30 * MINUTE_MS;
    expect((await watch(here.url, run, ticket)).status).toBe(200);
    world.auth.suspended.add(ada.id);
    expect(await here.status(run, ticket)).toBe(401);
  });

  it("TICKET-3: the API key's own die with the key", async () => {
    const clock = { at: Date.now() };
    const run = runIdFor();
    world.owner.adopt(run, YAML);
    const before = await gateway(clock);
    const ticket = await before.ticket(run, API_KEY);
    expect((await watch(before.url, run, ticket)).status).toBe(200);
    const after = await gateway(clock, { apiKey: 'another key of the same server' });
    expect(await after.status(run, ticket)).toBe(401);
  });

  it('one that was made up, changed or signed with another secret is refused', async () => {
    const clock = { at: Date.now() };
    const here = await gateway(clock);
    const ada = await world.auth.login('ada');
    const run = runOf(ada);
    const ticket = await here.ticket(run, ada.token);
    const claims = { run, tenant: 'user/ada', at: clock.at, user: 'ada', sid: ada.sessionId };
    const signed = (header: { alg: string; typ: string }, secret: string): Promise<string> =>
      new SignJWT(claims)
        .setProtectedHeader(header)
        .setIssuer('penstock')
        .setAudience('penstock-stream')
        .setJti('x')
        .sign(new TextEncoder().encode(secret));
    const [head, body, signature] = ticket.split('.') as [string, string, string];
    for (const wrong of [
      await signed({ alg: 'HS256', typ: 'st+jwt' }, 'another secret of thirty-two bytes!!'),
      await signed({ alg: 'HS256', typ: 'at+jwt' }, JWT_SECRET),
      `${head}.${body}.`,
      `${head}.${body}`,
      `${head}.${Buffer.from(JSON.stringify({ ...claims, run })).toString('base64url')}.${signature}`,
      `${head}.`,
      `${ticket}x`,
    ]) {
      expect(await here.status(run, wrong)).toBe(401);
    }
    expect((await watch(here.url, run, ticket)).status).toBe(200);
  });

  it('neither a ticket nor a token of the address is in an answer or a log', async () => {
    const lines: string[] = [];
    const write = (fields: Record<string, unknown>, message: string): void =>
      void lines.push(JSON.stringify([fields, message]));
    const clock = { at: Date.now() };
    const app = await world.gateway({
      now: () => clock.at,
      log: { debug: write, info: write, warn: write, error: write },
    });
    for (const path of ['/pipeline/x/logs', `/pipeline/${runIdFor()}/logs`, '/auth/me', '/nothing', '/graphql']) {
      for (const token of [
        'CANARY',
        `${Buffer.from('{"alg":"HS256","typ":"st+jwt"}').toString('base64url')}.CANARY.CANARY`,
      ]) {
        const answer = await app.inject({ url: `${path}?token=${token}` });
        expect(answer.body + JSON.stringify(answer.headers)).not.toContain('CANARY');
        expect(answer.statusCode).not.toBe(200);
      }
    }
    expect(lines.join('\n')).not.toContain('CANARY');
  });
});

describe('log streams', () => {
  it('a logout ends those of its user on every gateway, and no others', async () => {
    const clock = { at: Date.now() };
    const [here, there] = [await gateway(clock), await gateway(clock)];
    const ada = await world.auth.login('ada');
    const again = await world.auth.login('ada');
    const bob = await world.auth.login('bob');
    const [run, bobs] = [runOf(ada), runOf(bob)];
    const ending = [
      await watch(here.url, run, ada.token, 'header'),
      await watch(there.url, run, ada.token),
      await watch(there.url, run, await here.ticket(run, ada.token)),
    ];
    const staying = [
      await watch(here.url, bobs, bob.token),
      await watch(there.url, run, world.auth.personalToken('ada', 'read')),
    ];
    expect([...ending, ...staying].map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    await world.auth.logout(ada);
    await Promise.all(ending.map(({ ended }) => ended));
    for (const { url } of [here, there]) {
      for (const token of [ada.token, again.token]) {
        const answer = await fetch(`${url}/graphql`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
          body: '{"query":"{ me { id } }"}',
        });
        expect(await answer.json()).toMatchObject({
          data: null,
          errors: [{ extensions: { code: 'UNAUTHENTICATED' } }],
        });
        expect((await watch(url, run, token)).status).toBe(401);
      }
    }
    finish(run);
    finish(bobs);
    for (const client of staying) {
      await client.ended;
      expect(client.messages.at(-1)?.event).toBe('pipeline_completed');
    }
  });

  it('revoking a personal token ends the streams that it opened', async () => {
    const clock = { at: Date.now() };
    const here = await gateway(clock);
    const ada = await world.auth.login('ada');
    const run = runOf(ada);
    const personal = world.auth.personalToken('ada', 'read');
    const client = await watch(here.url, run, personal);
    await world.auth.revokeToken(personal);
    await client.ended;
    expect((await watch(here.url, run, personal)).status).toBe(401);
  });
});
