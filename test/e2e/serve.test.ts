import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { allProcesses } from '../support/processes.ts';
import { startServer, temporaryFolder, trigger, TRIGGER, type RunningServer } from '../support/server.ts';
import { readStream } from '../support/sse.ts';
import { until } from '../support/wait.ts';

const logsUrl = (server: RunningServer, runId: string): string => `${server.url}/pipeline/${runId}/logs`;

/** Processes whose command line holds a number that only this test uses. */
const alive = (mark: string): number =>
  allProcesses().filter(({ command, state }) => command.includes(mark) && state !== 'Z').length;

const mark = (): string => String(1_000_000 + Math.floor(Math.random() * 8_000_000));

describe('penstock serve, through its public API', () => {
  let server: RunningServer;

  beforeAll(async () => {
    server = await startServer({ env: { SERVICE_SLOTS: '4' } });
  });

  afterAll(async () => {
    await server.stop();
  });

  it('runs a pipeline stage by stage in real processes, outputs included, and shows it in `runs`', async () => {
    const yaml = [
      'engine: any',
      'pipeline:',
      '  name: hello',
      'stages:',
      '  build:',
      '    run: |',
      '      echo building',
      '      echo "version=1.2.3" >> "$SERVICE_OUTPUT"',
      '    outputs: [version]',
      '  test:',
      '    after: build',
      '    run: echo "testing ${{ stages.build.outputs.version }}"',
      '  broken:',
      '    after: build',
      '    allow_failure: true',
      '    run: exit 3',
      '  never:',
      '    after: test',
      "    when: ${{ stages.build.outputs.version == '9' }}",
      '    run: echo no',
    ].join('\n');
    const { data } = await server.graphql<{
      triggerPipeline: { run: { id: string; status: string }; summary: unknown };
    }>(TRIGGER, { yaml, waitSeconds: 30 });
    const { run, summary } = data.triggerPipeline;
    expect(run).toMatchObject({ status: 'SUCCESS' });
    expect(summary).toEqual({ passed: 2, failed: 1, skipped: 1 });

    const { events } = await readStream(logsUrl(server, run.id), server.apiKey);
    expect(events.filter(({ event }) => event === 'stage_log').map(({ data: { line } }) => line)).toEqual(
      expect.arrayContaining(['building', 'testing 1.2.3']),
    );
    expect(events.at(-1)).toMatchObject({
      event: 'pipeline_completed',
      data: { type: 'pipeline_completed', status: 'SUCCESS' },
    });
    expect(
      events.find(({ data: { stage, type } }) => type === 'stage_completed' && stage === 'broken')?.data,
    ).toMatchObject({ status: 'Failed', reason: 'exit' });

    const listed = await server.graphql<{ runs: { id: string; status: string }[] }>('{ runs(limit: 5) { id status } }');
    expect(listed.data.runs).toContainEqual({ id: run.id, status: 'SUCCESS' });
    const kept = await server.graphql<{ artifacts: unknown[] }>(
      'query ($id: String!) { artifacts(run_id: $id) { stage key value } }',
      { id: run.id },
    );
    expect(kept.data.artifacts).toContainEqual({ stage: 'build', key: 'version', value: '1.2.3' });
  });

  it('P34: a run that is deleted is nowhere, and its logs with it', async () => {
    const yaml = 'pipeline: {name: gone}\nstages: {a: {run: echo gone}}\n';
    const { data } = await server.graphql<{ triggerPipeline: { run: { id: string } } }>(TRIGGER, {
      yaml,
      waitSeconds: 30,
    });
    const { id } = data.triggerPipeline.run;
    const remove = (): Promise<{ data: { deleteRun: boolean } | null; errors?: unknown }> =>
      server.graphql('mutation ($id: String) { deleteRun(id: $id) }', { id });
    expect((await remove()).data).toEqual({ deleteRun: true });
    const asked = await server.graphql('query ($id: String) { run(id: $id) { id } runs(limit: 100) { id } }', { id });
    expect(asked.data).toMatchObject({ run: null });
    expect(JSON.stringify(asked.data)).not.toContain(id);
    const stream = await fetch(logsUrl(server, id), { headers: { authorization: `Bearer ${server.apiKey}` } });
    expect(stream.status).toBe(404);
    expect((await remove()).errors).toMatchObject([{ extensions: { code: 'NOT_FOUND' } }]);
  });

  it('refuses a bad file with its places, and runs nothing of it', async () => {
    const { data, errors } = await server.graphql(TRIGGER, {
      yaml: 'pipeline:\n  name: p\nstages:\n  a:\n    run: "true"\n    aftr: b\n',
    });
    expect(data).toBeNull();
    expect(errors?.[0]).toMatchObject({ extensions: { code: 'BAD_USER_INPUT' } });
    expect(errors?.[0]?.message).toMatch(/line 6.*aftr.*did you mean 'after'/s);
  });

  it('a cancelled run leaves no process alive, whatever its stages did to hide', async () => {
    const seconds = mark();
    const yaml = [
      'pipeline:',
      '  name: stubborn',
      'stages:',
      '  hide:',
      '    run: |',
      `      trap "" TERM; setsid sleep ${seconds} & nohup sleep ${seconds} >/dev/null 2>&1 & sh -c 'trap "" TERM; sleep ${seconds}'`,
      '  after: { after: hide, run: echo never }',
    ].join('\n');
    const runId = await trigger(server, yaml);
    await until('its processes run', () => alive(seconds) >= 3);
    const cancelled = await server.graphql<{ cancelPipeline: { cancelledStages: number; run: { status: string } } }>(
      'mutation ($id: String!) { cancelPipeline(id: $id) { cancelledStages run { status } } }',
      { id: runId },
    );
    expect(cancelled.data.cancelPipeline).toEqual({ cancelledStages: 2, run: { status: 'CANCELLED' } });
    await until('its processes are gone', () => alive(seconds) === 0, 15_000);
    const { events } = await readStream(logsUrl(server, runId), server.apiKey);
    expect(events.at(-1)).toMatchObject({
      event: 'pipeline_cancelled',
      data: { status: 'CANCELLED', cancelledStages: 2 },
    });
    expect(events.some(({ event }) => event === 'stage_completed')).toBe(false);
    const again = await server.graphql('mutation ($id: String!) { cancelPipeline(id: $id) { cancelledStages } }', {
      id: runId,
    });
    expect(again.errors?.[0]?.extensions?.code).toBe('CONFLICT');
  });

  it('what a stage prints while it is being stopped is told between pipeline_cancelling and pipeline_cancelled, live and afterwards', async () => {
    const run = "exec 2>/dev/null; trap 'echo tidying; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    const runId = await trigger(server, `pipeline:\n  name: tidy\nstages:\n  tidy:\n    run: "${run}"\n`);
    const ready = Promise.withResolvers<void>();
    const live = readStream(logsUrl(server, runId), server.apiKey, {
      onEvent: ({ data }) => void (data['line'] === 'ready' && ready.resolve()),
    });
    await ready.promise;
    await server.graphql('mutation ($id: String!) { cancelPipeline(id: $id) { cancelledStages } }', { id: runId });
    const outlineOf = ({ events }: Awaited<typeof live>): unknown[] =>
      events.map(({ event, data }) => data['line'] ?? event);
    expect(outlineOf(await live)).toEqual([
      'stage_started',
      'ready',
      'pipeline_cancelling',
      'tidying',
      'pipeline_cancelled',
    ]);
    const replay = await readStream(logsUrl(server, runId), server.apiKey);
    const linesOf = ({ events }: Awaited<typeof live>): unknown[] => events.flatMap(({ data }) => data['line'] ?? []);
    expect(linesOf(replay)).toEqual(['ready', 'tidying']);
    expect(replay.events.map(({ event }) => event).toSorted()).toEqual(
      (await live).events.map(({ event }) => event).toSorted(),
    );
  });

  it('a client that comes back with the last id of an ended run gets 204, any other cursor its rest', async () => {
    const runId = await trigger(server, 'pipeline:\n  name: two\nstages:\n  a:\n    run: echo one; echo two\n');
    const { events } = await readStream(logsUrl(server, runId), server.apiKey);
    expect((await readStream(logsUrl(server, runId), server.apiKey, { lastEventId: events.at(-1)?.id })).status).toBe(
      204,
    );
    for (const [index, { id }] of events.slice(0, -1).entries()) {
      const rest = await readStream(logsUrl(server, runId), server.apiKey, { lastEventId: id });
      expect(rest.events).toEqual(events.slice(index + 1));
    }
  });
});

describe('stopping', () => {
  it('SIGTERM ends it with 0, nothing of it lives on, and the next start on the same folder takes up at once', async () => {
    const folder = temporaryFolder();
    const first = await startServer({ dataDir: folder.path });
    const { data } = await first.graphql<{ triggerPipeline: { run: { id: string } } }>(TRIGGER, {
      yaml: 'pipeline:\n  name: p\nstages:\n  a:\n    run: echo kept\n',
      waitSeconds: 30,
    });
    expect(await first.stop()).toBe(0);
    await until('nothing of it lives on', () => alive(folder.path) === 0);
    const second = await startServer({ dataDir: folder.path });
    const { events } = await readStream(logsUrl(second, data.triggerPipeline.run.id), second.apiKey);
    expect(events.map(({ event }) => event)).toEqual([
      'stage_started',
      'stage_log',
      'stage_completed',
      'pipeline_completed',
    ]);
    await second.stop();
    folder.remove();
  });

  it('a second server on the same data folder is refused in one sentence', async () => {
    const folder = temporaryFolder();
    const server = await startServer({ dataDir: folder.path });
    await expect(startServer({ dataDir: folder.path })).rejects.toThrow(`is using the data folder ${folder.path}`);
    await server.stop();
    folder.remove();
  });
});

describe('fairness between keys', () => {
  it("one key with 2,000 queued stages delays another key's single stage by at most one slot's turnover", async () => {
    const server = await startServer({ env: { SERVICE_SLOTS: '2' } });
    try {
      const many = [
        'pipeline:',
        '  name: many',
        'stages:',
        ...Array.from({ length: 2_000 }, (_, index) => `  s${index}: { run: "true" }`),
      ].join('\n');
      const manyId = await trigger(server, many);
      await until('the first of the many run', async () =>
        (await stagesOf(server, manyId)).some(({ status }) => status === 'SUCCESS'),
      );
      const answer = await server.graphql<{ triggerPipeline: { run: { id: string; status: string } } }>(TRIGGER, {
        yaml: 'pipeline:\n  name: other\nstages:\n  only:\n    run: "true"\n',
        waitSeconds: 60,
      });
      const { id, status } = answer.data.triggerPipeline.run;
      expect(status).toBe('SUCCESS');
      const [only] = await stagesOf(server, id);
      const { data } = await server.graphql<{ run: { startedAt: string } }>(
        'query ($id: String!) { run(id: $id) { startedAt } }',
        { id },
      );
      const between = (await stagesOf(server, manyId)).filter(
        ({ startedAt }) => startedAt !== null && startedAt > data.run.startedAt && startedAt < (only?.startedAt ?? ''),
      );
      // Both slots may have been given away in the commit that was under way.
      expect(between.length).toBeLessThanOrEqual(4);
      await server.graphql('mutation ($id: String!) { cancelPipeline(id: $id) { cancelledStages } }', { id: manyId });
    } finally {
      await server.stop();
    }
  });
});

describe('a server that is gone or stands still', () => {
  it.each([
    ['SIGKILL', 'killed'],
    ['SIGSTOP', 'frozen for longer than its lease'],
  ] as const)('%s: the processes of its stages end (%s)', async (signal, _meaning) => {
    const folder = temporaryFolder();
    const server = await startServer({ dataDir: folder.path, env: { SERVICE_RUNNER_LEASE_SECS: '6' } });
    const seconds = mark();
    try {
      await trigger(
        server,
        `pipeline:\n  name: long\nstages:\n  a:\n    run: setsid sleep ${seconds} & sleep ${seconds}\n`,
      );
      await until('its processes run', () => alive(seconds) >= 2);
      process.kill(server.pid, signal);
      await until('its processes are gone', () => alive(seconds) === 0, 15_000);
      expect(alive(seconds)).toBe(0);
    } finally {
      server.child.kill('SIGKILL');
      await until('the server is gone', () => alive(folder.path) === 0, 15_000);
      folder.remove();
    }
  });
});

async function stagesOf(
  server: RunningServer,
  id: string,
): Promise<{ name: string; status: string; startedAt: string | null }[]> {
  const answer = await server.graphql<{
    run: { stages: { name: string; status: string; startedAt: string | null }[] };
  }>('query ($id: String!) { run(id: $id) { stages { name status startedAt } } }', { id });
  return answer.data.run.stages;
}
