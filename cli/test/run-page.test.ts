import { describe, expect, it } from 'vitest';
import { LivePage } from '../src/output/live-page.ts';
import { painter } from '../src/output/painter.ts';
import { graphLines, type GraphStage } from '../src/output/run-graph.ts';
import { runPage } from '../src/output/run-page.ts';
import { cellsOf } from '../src/output/printable-text.ts';
import { StageLabels } from '../src/output/stage-labels.ts';
import { summaryTable } from '../src/output/summary-table.ts';
import { StageTally } from '../src/output/stage-tally.ts';

const plain = painter(false);
const stage = (name: string, after: readonly string[] = [], remark = ''): GraphStage => ({
  name,
  status: 'SUCCESS',
  time: '1.0 s',
  remark,
  after,
});

/** Without status and time. */
const outline = (stages: readonly GraphStage[], columns?: number): string[] =>
  graphLines(stages, plain, columns).map((line) => line.replace(/ +SUCCESS +1\.0 s/u, ''));

describe('the graph of a run', () => {
  it('has each stage below the one that it comes after, and names the others', () => {
    expect(
      outline([
        stage('build'),
        stage('lint'),
        stage('test (n=1)', ['build']),
        stage('test (n=2)', ['build'], 'exit code 1'),
        stage('deploy', ['test', 'lint']),
      ]),
    ).toEqual(['build', '├─ test (n=1)', '└─ test (n=2)  exit code 1', '   └─ deploy  also after test, lint', 'lint']);
  });

  it('has every stage once where stages are named before those that they come after, and where they come after none that is known', () => {
    expect(outline([stage('last', ['middle']), stage('middle', ['first', 'gone']), stage('first')])).toEqual([
      'first',
      '└─ middle  also after gone',
      '   └─ last',
    ]);
  });

  it('of a chain of 2,000 stages stays within the terminal and says what each comes after', () => {
    const chain = Array.from({ length: 2000 }, (_, index) =>
      stage(`stage-${index}`, index === 0 ? [] : [`stage-${index - 1}`]),
    );
    const lines = graphLines(chain, plain, 80);
    expect(lines.length).toBe(2000);
    expect(Math.max(...lines.map(cellsOf))).toBeLessThanOrEqual(80);
    expect(lines.at(-1)).toContain('after stage-1998');
  });
});

describe('the page of a run', () => {
  const run = {
    id: '0192f0c1-2b3c-7abc-8def-0123456789ab',
    pipelineName: 'hello',
    status: 'FAILED',
    startedAt: '2026-01-01T00:00:00.000Z',
    finishedAt: '2026-01-01T00:01:05.000Z',
    repository: 'acme/shop',
    ref: 'refs/heads/main',
    commit: '0123456789abcdef0123',
    outcome: null,
    reason: null,
    stages: [
      {
        name: 'integration tests in a browser',
        status: 'FAILED',
        startedAt: '2026-01-01T00:00:01.000Z',
        finishedAt: '2026-01-01T00:00:03.000Z',
        reason: 'exit',
        attempt: 2,
        exitCode: 3,
        after: [],
      },
    ],
  };

  it('says which run it is, how each stage stands and why, and how it ended', () => {
    expect(runPage(run, 0, plain, {})).toEqual([
      'Run 0192f0c1-2b3c-7abc-8def-0123456789ab',
      'Pipeline hello, started 2026-01-01 00:00:00Z',
      'acme/shop main 0123456789ab',
      '',
      'integration tests in a browser  FAILED     2.0 s  exit code 3, attempt 2',
      '',
      'FAILED in 1 min 5 s: 1 failed',
    ]);
  });

  it('stays within a terminal of 40 columns, reasons below their stages', () => {
    const lines = runPage(run, 0, plain, { columns: 40 });
    expect(Math.max(...lines.map(cellsOf))).toBeLessThanOrEqual(40);
    expect(lines).toContain('    exit code 3, attempt 2');
  });

  it('that is drawn over and over has no more lines than the screen, and shows what is under way', () => {
    const [one] = run.stages;
    if (one === undefined) throw new Error('no stage');
    const stages = Array.from({ length: 100 }, (_, index) => ({
      ...one,
      name: `s${index}`,
      status: index === 90 ? 'RUNNING' : 'SUCCESS',
    }));
    const lines = runPage({ ...run, status: 'RUNNING', finishedAt: null, stages }, 0, plain, { rows: 20 });
    expect(lines.length).toBeLessThan(20);
    expect(lines.join('\n')).toContain('s90');
    expect(lines.join('\n')).toMatch(/and \d+ more stages/);
  });
});

describe('short forms of stages’ names', () => {
  it('tell the expansions of a matrix apart however little room there is', () => {
    const names = ['a', 'b'].flatMap((os) =>
      Array.from({ length: 12 }, (_, n) => `integration-tests (browser=chromium-${n}, operating_system=${os})`),
    );
    for (const width of [8, 13, 28]) {
      const labels = new StageLabels(names, width);
      const short = names.map((name) => labels.labelOf(name));
      expect(new Set(short).size).toBe(names.length);
      expect(Math.max(...short.map(cellsOf))).toBeLessThanOrEqual(width);
    }
  });

  it('tells thousands of names apart that are cut to the same', () => {
    const names = Array.from(
      { length: 20_000 },
      (_, index) => `integration tests of ${index} with the newest database`,
    );
    const labels = new StageLabels(names, 28);
    expect(new Set(names.map((name) => labels.labelOf(name))).size).toBe(names.length);
    expect(labels.labelOf(names[1] ?? '')).toMatch(/~2$/);
  });

  it('leave the axes’ names out before anything else, and a name that fits as it is', () => {
    const labels = new StageLabels(['test (node=24, os=linux)', 'test (node=26, os=linux)', 'lint'], 18);
    expect(labels.labelOf('test (node=24, os=linux)')).toBe('test (24, linux)');
    expect(labels.labelOf('lint')).toBe('lint');
  });
});

it('the closing table keeps to the width of a narrow terminal', () => {
  const tally = new StageTally(['integration tests in a browser']);
  const timestamp = '2026-01-01T00:00:00.000Z';
  tally.take({
    type: 'stage_started',
    stage: 'integration tests in a browser',
    status: 'Running',
    attempt: 1,
    timestamp,
  });
  tally.take({
    type: 'stage_completed',
    stage: 'integration tests in a browser',
    status: 'Failed',
    reason: 'exit',
    exitCode: 3,
    logs: '',
    attempt: 1,
    timestamp,
  });
  tally.take({ type: 'pipeline_completed', status: 'FAILED', timestamp });
  const lines = summaryTable(tally, plain, 40).split('\n');
  expect(Math.max(...lines.map(cellsOf))).toBeLessThanOrEqual(40);
  expect(lines).toContain('  exit code 3');
});

it('a page that is drawn over begins where the one before began, though a line of that took several rows of the screen', () => {
  let printed = '';
  const page = new LivePage({ outIsTerminal: true, width: () => 20, print: (text) => (printed = text) });
  const long = painter(true)('red', 'x'.repeat(41));
  page.show(['head', long, ''], 'a');
  page.show(['head'], 'b');
  expect(printed).toBe('\u001b[5A\r\u001b[Jhead\n');
});
