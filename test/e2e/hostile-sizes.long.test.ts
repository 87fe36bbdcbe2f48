/** Files that are small and mean much: what one tenant sends ends no process, and takes nothing from another. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startServer, temporaryFolder, TRIGGER, type RunningServer } from '../support/server.ts';

const folder = temporaryFolder('penstock-sizes-');
let server: RunningServer;

beforeAll(async () => {
  server = await startServer({ dataDir: folder.path });
});
afterAll(async () => {
  await server.stop();
  folder.remove();
});

const statusOf = async (yaml: string, waitSeconds: number): Promise<string> => {
  const { data, errors } = await server.graphql<{ triggerPipeline: { run: { status: string } } } | null>(TRIGGER, {
    yaml,
    waitSeconds,
  });
  return data?.triggerPipeline.run.status ?? errors?.[0]?.extensions?.code ?? 'nothing';
};

const OTHER = 'pipeline: {name: other}\nstages:\n  a: {run: "true"}\n';

/** 17 KB that ask for 2,000 sets of 20 labels. */
const LABELS = [
  'pipeline: {name: labels}',
  'stages:',
  '  a:',
  '    run: "true"',
  `    matrix: {x: [${numbers(50)}], y: [${numbers(40)}]}`,
  `    runs_on: [${Array.from({ length: 20 }, (_, label) => `"l${label}${'x'.repeat(760)}-\${{ matrix.x }}-\${{ matrix.y }}"`).join(', ')}]`,
].join('\n');

/** As many and as long labels as one file may have, unlike those of any other. */
const wanting = (run: number): string =>
  [
    `pipeline: {name: wanting-${run}}`,
    'stages:',
    '  a:',
    '    run: "true"',
    `    matrix: {x: [${numbers(100)}]}`,
    `    runs_on: [${Array.from({ length: 5 }, (_, label) => `"nobody-${run}-${label}-xxxxxxxxxx-\${{ matrix.x }}"`).join(', ')}]`,
  ].join('\n');

function numbers(count: number): string {
  return Array.from({ length: count }, (_, index) => index).join(', ');
}

describe('labels by the thousand', () => {
  it('of one file are refused, of many runs are announced in pieces: the server lives, other runs go on, and it starts again', async () => {
    expect(await statusOf(LABELS, 0)).toBe('BAD_USER_INPUT');
    // Together more than one message carries.
    for (let run = 0; run < 90; run++) expect(await statusOf(wanting(run), 0)).toMatch(/PENDING|QUEUED/);
    expect(await statusOf(OTHER, 30)).toBe('SUCCESS');
    expect(await statusOf(OTHER, 30)).toBe('SUCCESS');
    await server.stop();
    server = await startServer({ dataDir: folder.path });
    expect(await statusOf(OTHER, 30)).toBe('SUCCESS');
    expect(server.child.exitCode).toBeNull();
  }, 120_000);
});
