import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { runCollections, type CollectionSpec } from '@penstock/store';
import { API_KEY, happened, makeWorld, type World } from './harness.ts';
import { logStreams } from './log-stream-fixtures.ts';
import { SseClient } from './sse-client.ts';

let world: World;
const { listening, watch, newRun, play, opened, logOf, close } = logStreams(() => world);
beforeAll(async () => {
  world = await makeWorld();
});
afterEach(async () => {
  close();
  await world.reset();
});
afterAll(() => world.close());

describe('the stream', () => {
  it('has the type text/event-stream, is not cached, carries the security headers and a hint when to reconnect', async () => {
    const { url } = await listening({ corsOrigins: ['https://ok.example'] });
    const { id, log } = newRun();
    await play(id, log);
    const client = await SseClient.open(`${url}/pipeline/${id}/logs?token=${API_KEY}`, {
      origin: 'https://ok.example',
    });
    await client.ended;
    expect(client.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': expect.stringContaining('no-cache'),
      'x-accel-buffering': 'no',
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'access-control-allow-origin': 'https://ok.example',
    });
    expect(client.retries).toEqual([2000]);
  });

  it('every message has an id and an event line equal to the type of its data', async () => {
    const { url } = await listening();
    const { id, log } = newRun();
    await play(id, log);
    const client = await watch(url, id);
    await client.ended;
    for (const message of client.messages)
      expect(message).toMatchObject({ id: expect.stringMatching(/^[\w-]+$/u), data: { type: message.event } });
    expect(new Set(client.messages.map((message) => message.id)).size).toBe(client.messages.length);
  });

  it('a live run is shown as it happens, and the stream ends with the run', async () => {
    const { url } = await listening();
    const { id, log } = newRun();
    const client = await watch(url, id);
    world.owner.commit(id, [happened.queued('build'), happened.started('build')]);
    await client.count(1);
    const bytes = await log.write('build', 'hello\n');
    await client.count(2);
    world.owner.commit(id, [happened.completed('build', bytes, { status: 'FAILED', reason: 'exit', exitCode: 1 })]);
    await client.count(3);
    world.owner.commit(id, [happened.skipped('test'), happened.runCompleted('FAILED')]);
    await client.ended;
    expect(client.outline()).toEqual([
      'stage_started build',
      'build| hello',
      'stage_completed build',
      'stage_skipped test',
      'pipeline_completed',
    ]);
    expect(client.messages[2]?.data).toMatchObject({ status: 'Failed', logs: 'hello\n', reason: 'exit' });
    expect(client.messages[4]?.data).toMatchObject({ status: 'FAILED' });
  });

  it('an ended run is replayed whole, from its owner or from the store, and the stream then closes', async () => {
    const { url } = await listening();
    const { id, log } = newRun();
    const outline = await play(id, log);
    const fromOwner = await watch(url, id);
    await fromOwner.ended;
    await world.owner.project(id);
    const fromStore = await watch(url, id);
    await fromStore.ended;
    expect(fromOwner.outline()).toEqual(outline);
    expect(fromStore.messages).toEqual(fromOwner.messages);
  });

  it('of an ended run whose document is damaged ends, and who comes again is told why', async () => {
    const { url } = await listening();
    const { id, log } = newRun();
    await play(id, log);
    await world.owner.project(id);
    const runs = world.store.collection(runCollections.find(({ name }) => name === 'runs') as CollectionSpec);
    const document = await runs.get(id);
    if (document === null) throw new Error('it was not saved');
    const damaged: object = { ...document, incarnation: 2, story: '{' };
    await runs.replaceNewer([damaged as typeof document]);
    const client = await watch(url, id);
    await client.ended;
    expect(client.messages).toEqual([]);
    const again = await fetch(`${url}/pipeline/${id}/logs`, { headers: { authorization: `Bearer ${API_KEY}` } });
    expect([again.status, await again.text()]).toEqual([404, expect.stringContaining('is damaged')]);
  });

  it('who joins in the middle gets everything from the beginning, then what follows', async () => {
    const { url } = await listening();
    const { id, log } = newRun();
    const first = await watch(url, id);
    world.owner.commit(id, [happened.queued('build'), happened.started('build')]);
    await log.write('build', 'one\n');
    await first.count(2);
    const second = await watch(url, id);
    await second.count(2);
    const bytes = await log.write('build', 'two\n');
    world.owner.commit(id, [happened.completed('build', bytes), happened.skipped('test'), happened.runCompleted()]);
    await Promise.all([first.ended, second.ended]);
    expect(second.messages).toEqual(first.messages);
    expect(first.outline()).toEqual([
      'stage_started build',
      'build| one',
      'build| two',
      'stage_completed build',
      'stage_skipped test',
      'pipeline_completed',
    ]);
  });

  it('pipeline_cancelled is the last message of a cancelled run, behind all that its stages wrote while they were stopped', async () => {
    const { url } = await listening();
    const { id, log } = newRun();
    const client = await watch(url, id);
    world.owner.commit(id, [happened.queued('build'), happened.started('build')]);
    // The clocks of runner and owner are hours apart: they are never compared.
    await log.write('build', 'before\n', { at: Date.now() + 7_200_000 });
    await client.count(2);
    const at = Date.now() - 3_600_000;
    world.owner.commit(id, [{ type: 'run_cancelled', at, cancelledStages: 2 }]);
    await client.count(3);
    const late = await watch(url, id);
    await late.count(3);
    const logBytes = await log.write('build', 'after\n', { at: Date.now() + 7_200_000 });
    world.owner.commit(id, [
      { type: 'attempt_gone', at, stage: 'build', attempt: 1, logBytes },
      { type: 'run_stopped', at, status: 'CANCELLED', cancelledStages: 2 },
    ]);
    await Promise.all([client.ended, late.ended]);
    await log.write('build', 'nobody hears this\n');
    const replay = await watch(url, id);
    await replay.ended;
    await world.owner.project(id);
    const fromStore = await watch(url, id);
    await fromStore.ended;
    expect(client.outline()).toEqual([
      'stage_started build',
      'build| before',
      'pipeline_cancelling',
      'build| after',
      'pipeline_cancelled',
    ]);
    const dataOf = (heard: SseClient, isLog: boolean): unknown[] =>
      heard.messages.filter(({ event }) => (event === 'stage_log') === isLog).map(({ data }) => data);
    for (const again of [late, replay, fromStore])
      for (const isLog of [true, false]) expect(dataOf(again, isLog)).toEqual(dataOf(client, isLog));
    expect((await watch(url, id, { lastEventId: client.messages.at(-1)?.id })).status).toBe(204);
    expect(client.messages.at(-1)?.data).toMatchObject({ status: 'CANCELLED', cancelledStages: 2 });
  });

  it('FEED-9: who watches a run that goes on is told once when all that had happened before is there, also where that is nothing', async () => {
    const { url } = await listening();
    const { id, log } = newRun();
    const isTold = ({ comments }: SseClient): boolean => comments.includes('caught up');
    const early = await watch(url, id);
    await early.until(isTold);
    expect(early.messages).toEqual([]);
    world.owner.commit(id, [happened.queued('build'), happened.started('build')]);
    const bytes = await log.write('build', 'one\n');
    await early.count(2);
    const late = await watch(url, id);
    await late.until(isTold);
    expect(late.outline()).toEqual(['stage_started build', 'build| one']);
    const back = await watch(url, id, { lastEventId: late.messages[1]?.id });
    await back.until(isTold);
    expect(back.outline()).toEqual([]);
    world.owner.commit(id, [happened.completed('build', bytes), happened.skipped('test'), happened.runCompleted()]);
    await Promise.all([early.ended, late.ended, back.ended]);
    for (const { comments } of [early, late, back]) expect(comments).toEqual(['caught up']);
  });

  it('a long history is asked for in pages', async () => {
    const { url } = await listening();
    const { id, log } = newRun();
    const outline = await play(id, log);
    world.owner.watchPage = 2;
    const client = await watch(url, id);
    await client.ended;
    expect(client.outline()).toEqual(outline);
  });

  it('HEAD answers the headers alone', async () => {
    const { app } = await listening();
    const { id } = newRun();
    const response = await app.inject({ method: 'HEAD', url: `/pipeline/${id}/logs?token=${API_KEY}` });
    expect([response.statusCode, response.headers['content-type'], response.body]).toEqual([
      200,
      'text/event-stream',
      '',
    ]);
  });
});

describe('resuming', () => {
  it('from any message on, by header or by ?lastEventId=, nothing is lost or repeated', async () => {
    const { url } = await listening();
    const { id, log } = newRun();
    await play(id, log);
    const whole = await watch(url, id);
    await whole.ended;
    for (const [index, { id: cursor }] of whole.messages.slice(0, -1).entries()) {
      const byHeader = await watch(url, id, { lastEventId: cursor });
      const byQuery = await SseClient.open(`${url}/pipeline/${id}/logs?token=${API_KEY}&lastEventId=${cursor}`);
      await Promise.all([byHeader.ended, byQuery.ended]);
      expect(byHeader.messages).toEqual(whole.messages.slice(index + 1));
      expect(byQuery.messages).toEqual(whole.messages.slice(index + 1));
    }
  });

  it('a client that was cut off while the run lived resumes live, and after the run has ended and left its owner', async () => {
    const { url } = await listening();
    const { id, log } = newRun();
    const first = await watch(url, id);
    world.owner.commit(id, [happened.queued('build'), happened.started('build')]);
    await log.write('build', 'one\ntwo\n');
    await first.count(3);
    first.close();
    const second = await watch(url, id, { lastEventId: first.messages[1]?.id });
    await second.count(1);
    const bytes = await log.write('build', 'three\n');
    await second.count(2);
    second.close();
    world.owner.commit(id, [happened.completed('build', bytes), happened.skipped('test'), happened.runCompleted()]);
    await world.owner.project(id);
    const third = await watch(url, id, { lastEventId: second.lastId });
    await third.ended;
    expect([...first.outline().slice(0, 2), ...second.outline(), ...third.outline()]).toEqual([
      'stage_started build',
      'build| one',
      'build| two',
      'build| three',
      'stage_completed build',
      'stage_skipped test',
      'pipeline_completed',
    ]);
  });

  it('a client that comes back with the cursor of the last message gets 204', async () => {
    const { url } = await listening();
    const { id, log } = newRun();
    await play(id, log);
    const whole = await watch(url, id);
    await whole.ended;
    world.owner.commit(id, [], { silently: true });
    expect((await watch(url, id, { lastEventId: whole.lastId })).status).toBe(204);
    await world.owner.project(id);
    expect((await watch(url, id, { lastEventId: whole.lastId })).status).toBe(204);
  });

  it("an unknown or garbled cursor, another run's too, is a full replay", async () => {
    const { url } = await listening();
    const { id, log } = newRun();
    const outline = await play(id, log);
    const other = newRun();
    await play(other.id, other.log);
    const foreign = await watch(url, other.id);
    await foreign.ended;
    for (const lastEventId of ['x', '%', '9'.repeat(500), foreign.lastId.slice(2)]) {
      const client = await watch(url, id, { lastEventId });
      await client.ended;
      expect(client.outline()).toEqual(outline);
    }
  });
});

describe('P20: what was not heard is asked for', () => {
  it('a gap in the versions is filled', async () => {
    const { url } = await listening();
    const { id } = newRun();
    const client = await watch(url, id);
    world.owner.commit(id, [happened.queued('build')]);
    world.owner.commit(id, [happened.started('build')], { silently: true });
    world.owner.commit(id, [happened.completed('build')]);
    await client.count(2);
    expect(client.outline()).toEqual(['stage_started build', 'stage_completed build']);
  });

  it('a last event that was lost, when a new owner opens', async () => {
    const { url } = await listening();
    const { id } = newRun();
    const client = await watch(url, id);
    world.owner.commit(id, [happened.queued('build'), happened.started('build')]);
    await client.count(1);
    world.owner.commit(id, [happened.completed('build'), happened.skipped('test'), happened.runCompleted()], {
      silently: true,
    });
    world.owner.epoch += 1;
    world.owner.announce();
    await client.ended;
    expect(client.outline().at(-1)).toBe('pipeline_completed');
  });

  it('P4: events of a deposed owner are not believed', async () => {
    const { url } = await listening();
    const { id } = newRun();
    world.owner.epoch = 3;
    const client = await watch(url, id);
    world.owner.commit(id, [happened.queued('build'), happened.started('build')], { silently: true });
    world.owner.tell(id, 2, 2);
    await world.ownerBus.flush();
    await world.bus.flush();
    expect(client.messages).toEqual([]);
    world.owner.tell(id, 2);
    await client.count(1);
  });

  it('chunks that were stored before anybody watched, and those of a broken connection', async () => {
    const { url } = await listening();
    const { id, log } = newRun();
    world.owner.commit(id, [happened.queued('build'), happened.started('build')]);
    await log.write('build', 'early\n');
    const client = await watch(url, id);
    await client.count(2);
    await world.broker.kill();
    await world.broker.restart();
    const bytes = await log.write('build', 'after the broker came back\n');
    world.owner.commit(id, [happened.completed('build', bytes)]);
    await client.count(4);
    expect(client.outline()).toEqual([
      'stage_started build',
      'build| early',
      'build| after the broker came back',
      'stage_completed build',
    ]);
  });

  it('P21: a chunk of a runner that the journal does not name holds nobody up', async () => {
    const { url } = await listening();
    const { id, log } = newRun();
    const client = await watch(url, id);
    world.owner.commit(id, [happened.queued('build'), happened.started('build')]);
    const forger = logOf(id);
    await forger.write('build', 'forged\n', { runner: 'evil' });
    await forger.write('test', 'forged\n', { runner: 'evil', attempt: 9 });
    world.owner.commit(id, [happened.completed('build', await log.write('build', 'true\n'))]);
    await client.count(3);
    expect(client.outline()).toEqual(['stage_started build', 'build| true', 'stage_completed build']);
  });

  it('P21: a chunk that is not in the stream is shown as missing, and the event stream goes on', async () => {
    const { url } = await listening();
    const { id, log } = newRun();
    const client = await watch(url, id);
    world.owner.commit(id, [happened.queued('build'), happened.started('build')]);
    world.owner.commit(id, [happened.completed('build', await log.write('build', 'rest\n', { offset: 100 }))]);
    await client.count(4);
    expect(client.outline()).toEqual([
      'stage_started build',
      'build! [100 bytes of this log are no longer available]',
      'build| rest',
      'stage_completed build',
    ]);
  });
});

describe('many and slow clients', () => {
  it('two hundred clients, joining at any time, all receive the same', async () => {
    const { url } = await listening({ streamsPerUser: 200 });
    const { id, log } = newRun();
    const joining = Promise.all(Array.from({ length: 200 }, () => watch(url, id)));
    world.owner.commit(id, [happened.queued('build'), happened.started('build')]);
    let bytes = 0;
    for (let count = 0; count < 50; count++) bytes = await log.write('build', `line ${count}\n`);
    world.owner.commit(id, [happened.completed('build', bytes), happened.skipped('test'), happened.runCompleted()]);
    const all = await joining;
    await Promise.all(all.map((client) => client.ended));
    expect(all[0]?.messages).toHaveLength(54);
    for (const client of all) expect(client.outline()).toEqual(all[0]?.outline());
  });

  it('a client that reads nothing for a while misses nothing, and holds up nobody', async () => {
    const { url } = await listening();
    const { id, log } = newRun();
    const [slow, quick] = [await watch(url, id), await watch(url, id)];
    world.owner.commit(id, [happened.queued('build'), happened.started('build')]);
    await slow.count(1);
    slow.pause();
    const text = `${'x'.repeat(999)}\n`.repeat(64);
    let bytes = 0;
    const chunks = 400;
    for (let count = 0; count < chunks; count++) bytes = await log.write('build', text);
    world.owner.commit(id, [happened.completed('build', bytes), happened.skipped('test'), happened.runCompleted()]);
    await quick.ended;
    slow.resume();
    await slow.ended;
    expect(quick.messages).toHaveLength(64 * chunks + 4);
    expect(slow.messages.length).toBe(quick.messages.length);
    expect(slow.messages.map(({ id: cursor }) => cursor)).toEqual(quick.messages.map(({ id: cursor }) => cursor));
  });

  it('a stage of many tiny lines is shown whole', async () => {
    const { url } = await listening();
    const { id, log } = newRun();
    const client = await watch(url, id);
    world.owner.commit(id, [happened.queued('build'), happened.started('build')]);
    let bytes = 0;
    for (let count = 0; count < 4; count++) bytes = await log.write('build', '\n'.repeat(60_000));
    world.owner.commit(id, [happened.completed('build', bytes), happened.skipped('test'), happened.runCompleted()]);
    await client.ended;
    expect(client.messages).toHaveLength(240_004);
  });

  it('a client that leaves is forgotten', async () => {
    const { url, app } = await listening({ streamsMax: 1 });
    const { id } = newRun();
    const client = await watch(url, id);
    client.close();
    const head = (): Promise<number> =>
      SseClient.open(`${url}/pipeline/${id}/logs`, { token: API_KEY }).then((next) => {
        opened(next);
        return next.status;
      });
    await expect.poll(head).toBe(200);
    expect(app.server.listening).toBe(true);
  });

  it('when the server stops, streams end with a hint to come back soon', async () => {
    const { url, app } = await listening();
    const { id } = newRun();
    world.owner.commit(id, [happened.queued('build'), happened.started('build')]);
    const client = await watch(url, id);
    await client.count(1);
    const closing = app.close();
    await client.ended;
    expect(client.retries).toEqual([2000, 500]);
    expect(client.comments.at(-1)).toContain('reconnect');
    await closing;
  });
});

describe('bytes on the wire', () => {
  it('every block of a stream, from its first byte on, is a message with event and data, or begins with a comment', async () => {
    const { url, app } = await listening();
    const ended = newRun();
    await play(ended.id, ended.log);
    const replayed = await fetch(`${url}/pipeline/${ended.id}/logs?token=${API_KEY}`);
    const live = newRun();
    world.owner.commit(live.id, [happened.queued('build'), happened.started('build')]);
    const watched = await fetch(`${url}/pipeline/${live.id}/logs?token=${API_KEY}`);
    const closing = app.close();
    for (const text of [await replayed.text(), await watched.text()]) {
      const blocks = text.split('\n\n');
      expect(blocks.pop()).toBe('');
      for (const block of blocks) expect(block).toMatch(/^:|^event: \w+\ndata: \{.*\}$/mu);
    }
    await closing;
  });

  it('a stream is well-formed HTTP with a comment as ping, one data line a message', async () => {
    const { url } = await listening();
    const { id, log } = newRun();
    await play(id, log);
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    const received: Buffer[] = [];
    socket.on('data', (bytes) => received.push(Buffer.from(bytes)));
    socket.write(`GET /pipeline/${id}/logs?token=${API_KEY} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    await once(socket, 'close');
    const text = Buffer.concat(received).toString();
    expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n/u);
    expect(text).toMatch(/\r\n0\r\n\r\n$/u);
    expect(text.match(/^event: stage_log$/gmu)).toHaveLength(4);
    expect(text.match(/^data: \{.*\}$/gmu)).toHaveLength(9);
  });
});
