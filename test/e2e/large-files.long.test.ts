/** Files of thousands of stages at the public door: what others run goes on meanwhile, and no lease is lost. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startServer, temporaryFolder, trigger, TRIGGER, type RunningServer } from '../support/server.ts';
import { readStream } from '../support/sse.ts';

/** About 400 KiB, and unlike all others. */
function large(number: number): string {
  const stages = Array.from(
    { length: 1_990 },
    (_, index) =>
      `  s${index}:\n    runs_on: [nowhere]\n    env: {NUMBER: "${number}", RUN: "\${{ run.id }}"}\n    timeout: 5m\n    run:\n      - echo the first of the commands that this stage has, which is number ${index}\n      - echo the second one, which is a little shorter\n`,
  );
  return `pipeline: {name: large-${number}}\nstages:\n${stages.join('')}`;
}

const SMALL = 'pipeline: {name: small}\nstages: {a: {run: "true"}}\n';

async function outcomeOf(server: RunningServer, yaml: string, waitSeconds: number): Promise<string> {
  const { data, errors } = await server.graphql<{ triggerPipeline: { run: { status: string } } } | null>(TRIGGER, {
    yaml,
    waitSeconds,
  });
  return data?.triggerPipeline.run.status ?? errors?.[0]?.extensions?.code ?? 'nothing';
}

it('twenty large files at once are taken or told to come again, while small runs succeed and a running stage keeps its lease', async () => {
  const folder = temporaryFolder('penstock-large-');
  const server = await startServer({ env: { SERVICE_RUNNER_LEASE_SECS: '10' } });
  try {
    const goOn = join(folder.path, 'go-on');
    const long = await trigger(
      server,
      `pipeline: {name: long}\nstages:\n  a:\n    run: while [ ! -e ${goOn} ]; do sleep 0.1; done\n`,
    );
    let isOver = false;
    const files = Array.from({ length: 20 }, (_, number) => outcomeOf(server, large(number), 0));
    const all = Promise.all(files).finally(() => {
      isOver = true;
    });
    const small: string[] = [];
    while (!isOver || small.length === 0) small.push(await outcomeOf(server, SMALL, 60));
    expect(new Set(small)).toEqual(new Set(['SUCCESS']));
    for (const outcome of await all) expect(outcome).toMatch(/^(PENDING|QUEUED|UNAVAILABLE)$/);
    // Who was told so comes again, and is taken.
    let again = await outcomeOf(server, large(0), 0);
    while (again === 'UNAVAILABLE') again = await outcomeOf(server, large(0), 0);
    expect(again).toMatch(/^(PENDING|QUEUED)$/);
    writeFileSync(goOn, '');
    const end = await endOf(server, long);
    expect(end).toEqual({ status: 'SUCCESS', stages: [{ status: 'SUCCESS', attempt: 1 }] });
    expect(server.output()).not.toContain('between two sessions');
  } finally {
    await server.stop();
    folder.remove();
  }
}, 180_000);

interface RunEnd {
  readonly status: string;
  readonly stages: readonly { readonly status: string; readonly attempt: number }[];
}

async function endOf(server: RunningServer, id: string): Promise<RunEnd | null> {
  await readStream(`${server.url}/pipeline/${id}/logs`, server.apiKey);
  const { data } = await server.graphql<{ run: RunEnd | null }>(
    'query ($id: String!) { run(id: $id) { status stages { status attempt } } }',
    { id },
  );
  return data.run;
}
