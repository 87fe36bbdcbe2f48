import { describe, expect, it } from 'vitest';
import { diagnosticLine, parsePipeline, PIPELINE_LIMITS } from '../src/index.ts';
import type { PipelineDefinition, StageDefinition } from '../src/index.ts';

function parsed(text: string, options: { template?: boolean } = {}): PipelineDefinition {
  const result = parsePipeline(text, options);
  if (!result.ok) throw new Error(result.diagnostics.map(diagnosticLine).join('\n'));
  return result.definition;
}

function stage(body: string): StageDefinition {
  const [first] = parsed(
    `pipeline: {name: p}\nstages:\n  a:\n    run: x\n    ${body.replaceAll('\n', '\n    ')}\n`,
  ).stages;
  if (first === undefined) throw new Error('no stage');
  return first;
}

const names = (definition: PipelineDefinition): string[] => definition.stages.map(({ name }) => name);

describe('a file of the specification alone', () => {
  it('works as it is, with every default', () => {
    expect(
      parsed(
        'engine: e\npipeline:\n  name: demo\nstages:\n  a:\n    run: make\n  b:\n    run: make test\n    after: [a]\n',
      ),
    ).toEqual({
      name: 'demo',
      engine: 'e',
      schedule: [],
      stages: [
        {
          name: 'a',
          after: [],
          runsAfterFailure: false,
          commands: [{ script: 'make', bindings: {} }],
          env: {},
          timeoutMs: 3_600_000,
          retry: { max: 0, backoff: 'constant', delayMs: 1_000, on: ['failure'] },
          allowFailure: false,
          workspace: 'shared',
          runsOn: [],
          outputs: [],
        },
        {
          name: 'b',
          after: ['a'],
          runsAfterFailure: false,
          commands: [{ script: 'make test', bindings: {} }],
          env: {},
          timeoutMs: 3_600_000,
          retry: { max: 0, backoff: 'constant', delayMs: 1_000, on: ['failure'] },
          allowFailure: false,
          workspace: 'shared',
          runsOn: [],
          outputs: [],
        },
      ],
    });
  });

  it('may be JSON, which is YAML too', () => {
    expect(names(parsed('{"pipeline":{"name":"p"},"stages":{"a":{"run":"x"}}}'))).toEqual(['a']);
  });

  it('has no room for surprise in what YAML takes for numbers and booleans', () => {
    const definition = parsed(
      'engine: 1.0\npipeline: {name: 0x10}\nenv: {A: 1.10, B: yes, C: 0o7, D: 1e3, E: 12:30:00, F: true}\nstages:\n  a: {run: true}\n  010: {run: 1.50}\n',
    );
    expect([definition.engine, definition.name, ...names(definition)]).toEqual(['1.0', '0x10', 'a', '010']);
    expect(definition.stages[0]?.env).toEqual({
      A: ['1.10'],
      B: ['yes'],
      C: ['0o7'],
      D: ['1e3'],
      E: ['12:30:00'],
      F: ['true'],
    });
    expect(definition.stages.map(({ commands }) => commands[0]?.script)).toEqual(['true', '1.50']);
  });
});

describe('the keys of a stage', () => {
  it.each([
    ['90s', 90_000],
    ['10m', 600_000],
    ['2h', 7_200_000],
    ['1h30m', 5_400_000],
    ['1h1m1s', 3_661_000],
    ['168h', 604_800_000],
    ['7d', 604_800_000],
    ['1d12h', 129_600_000],
  ])('a timeout of %s is read', (text, ms) => {
    expect(stage(`timeout: ${text}`).timeoutMs).toBe(ms);
  });

  it('retry is a number or a policy', () => {
    expect(stage('retry: 3').retry).toEqual({ max: 3, backoff: 'constant', delayMs: 1_000, on: ['failure'] });
    expect(stage('retry: {max: 2, on: [lost]}').retry).toEqual({
      max: 2,
      backoff: 'constant',
      delayMs: 1_000,
      on: ['lost'],
    });
    expect(stage('retry: {max: 10, on: timeout, delay: 0s, backoff: exponential}').retry).toEqual({
      max: 10,
      backoff: 'exponential',
      delayMs: 0,
      on: ['timeout'],
    });
  });

  it('when runs after a failure only where it calls always() or failure()', () => {
    expect(
      [
        stage('when: success()'),
        stage('when: failure()'),
        stage("when: run.id == 'x' && (true || always())"),
        stage('when: true'),
      ].map(({ runsAfterFailure }) => runsAfterFailure),
    ).toEqual([false, true, true, false]);
    expect(stage('when: ${{ success() }}').when).toEqual(stage('when: success()').when);
  });

  it('labels are sorted, each once, with the values of the matrix', () => {
    expect(stage('runs_on: [linux, gpu, linux]').runsOn).toEqual(['gpu', 'linux']);
    expect(stage('runs_on: "node-${{ matrix.n }}"\nmatrix: {n: [22, 24]}').runsOn).toEqual(['node-22']);
  });

  it("a stage's env wins over the pipeline's", () => {
    const [first, second] = parsed(
      'pipeline: {name: p}\nenv: {A: top, B: top}\nstages:\n  a: {run: x, env: {B: own, C: own}}\n  b: {run: x}\n',
    ).stages;
    expect(first?.env).toEqual({ A: ['top'], B: ['own'], C: ['own'] });
    expect(second?.env).toEqual({ A: ['top'], B: ['top'] });
  });

  it('records are safe for every key', () => {
    const [first] = parsed(
      'pipeline: {name: p}\nstages:\n  a: {run: x, env: {__proto__: polluted, constructor: c}, matrix: {__proto__: [v]}}\n',
    ).stages;
    expect(Object.keys(first?.env ?? {})).toEqual(['__proto__', 'constructor']);
    expect(first?.matrix?.values['__proto__']).toBe('v');
    expect(({} as Record<string, unknown>)['polluted']).toBe(undefined);
  });
});

describe('matrix', () => {
  const cells = (matrix: string): string[] =>
    parsed(`pipeline: {name: p}\nstages:\n  t:\n    run: x\n    matrix: ${matrix}\n`).stages.map(({ name }) => name);

  it('names its stages by the axes in file order, the last axis changing fastest', () => {
    expect(cells('{os: [linux, mac], node: [22, 24]}')).toEqual([
      't (os=linux, node=22)',
      't (os=linux, node=24)',
      't (os=mac, node=22)',
      't (os=mac, node=24)',
    ]);
  });

  it('takes away what an exclude matches in all its keys', () => {
    expect(cells('{os: [linux, mac], node: [22, 24], exclude: [{os: mac, node: 22}]}')).toEqual([
      't (os=linux, node=22)',
      't (os=linux, node=24)',
      't (os=mac, node=24)',
    ]);
    expect(cells('{os: [linux, mac], node: [22, 24], exclude: [{os: mac}, {node: 24}]}')).toEqual([
      't (os=linux, node=22)',
    ]);
  });

  it('adds an include to the combinations it agrees with, and else makes a stage of it', () => {
    const { stages } = parsed(
      'pipeline: {name: p}\nstages:\n  t:\n    run: x\n    matrix: {node: [22, 24], include: [{node: 24, extra: a}, {all: b}, {node: 26, extra: c}]}\n',
    );
    expect(stages.map(({ name, matrix }) => [name, { ...matrix?.values }])).toEqual([
      ['t (node=22)', { node: '22', all: 'b' }],
      ['t (node=24)', { node: '24', extra: 'a', all: 'b' }],
      ['t (node=26, extra=c)', { node: '26', extra: 'c' }],
    ]);
  });

  it('gives each of its stages what they share', () => {
    const { stages } = parsed(
      'pipeline: {name: p}\nstages:\n  t:\n    run: x\n    matrix: {n: [1, 2], max_parallel: 1, fail_fast: false}\n',
    );
    expect(stages[1]?.matrix).toEqual({ of: 't', values: { n: '2' }, maxParallel: 1, failFast: false });
    expect(stages[0]?.commands).toBe(stages[1]?.commands);
  });

  it('stands for all its stages in after, and each of them can be named', () => {
    const { stages } = parsed(
      "pipeline: {name: p}\nstages:\n  t: {run: x, matrix: {n: [1, 2]}}\n  all: {run: x, after: t}\n  one: {run: x, after: ['t (n=2)', 't (n=2)']}\n  more: {run: x, after: [t, 't (n=1)', all], matrix: {m: [1, 2]}}\n",
    );
    expect(stages.slice(2).map(({ name, after }) => [name, after])).toEqual([
      ['all', ['t (n=1)', 't (n=2)']],
      ['one', ['t (n=2)']],
      ['more (m=1)', ['t (n=1)', 't (n=2)', 'all']],
      ['more (m=2)', ['t (n=1)', 't (n=2)', 'all']],
    ]);
  });

  it('makes up to 256 stages', () => {
    const axis = Array.from({ length: 16 }, (_, index) => index).join(',');
    expect(cells(`{a: [${axis}], b: [${axis}]}`)).toHaveLength(PIPELINE_LIMITS.matrixCellsMax);
  });
});

describe('what stands beside the stages', () => {
  it('on and concurrency are read', () => {
    const definition = parsed(
      "pipeline: {name: p}\non: {push: {branches: main, tags-ignore: ['v0.*']}}\nconcurrency: {group: 'g-${{ pipeline.name }}', cancel_in_progress: true}\nstages:\n  a: {run: x}\n",
    );
    expect(definition.on).toEqual({ push: { branches: ['main'], tagsIgnore: ['v0.*'] } });
    expect(definition.concurrency).toEqual({
      group: ['g-', { expression: { kind: 'path', path: ['pipeline', 'name'] } }],
      cancelInProgress: true,
    });
  });

  it("webhook is known in the server's template, and nowhere else", () => {
    const text = 'pipeline: {name: p}\nstages:\n  a:\n    run: git checkout "${{ webhook.commit }}"\n';
    expect(parsed(text, { template: true }).stages[0]?.commands[0]?.bindings).toEqual({
      PENSTOCK_EXPR_1: { kind: 'path', path: ['webhook', 'commit'] },
    });
    const refused = parsePipeline(text);
    expect(refused.ok ? [] : refused.diagnostics.map(diagnosticLine)).toEqual([
      "line 4, column 28: 'webhook' is known in the server's template only",
    ]);
  });
});

describe('limits', () => {
  const many = (count: number): string =>
    `pipeline: {name: p}\nstages:\n${Array.from({ length: count }, (_, index) => `  s${index}:\n    run: x\n${index === 0 ? '' : `    after: [s${index - 1}]\n`}`).join('')}`;

  it('2,000 stages in a chain are read', () => {
    expect(parsed(many(PIPELINE_LIMITS.stagesMax)).stages).toHaveLength(2_000);
  });

  it('2,000 stages of 80 tokens are read, also with scripts of several lines', () => {
    const text =
      `pipeline: {name: p}\nstages:\n${Array.from({ length: 2_000 }, (_, index) => `  s${index}:\n    run: |\n      make ${index}\n      echo done\n    env:\n      A: one\n      B: two\n    timeout: 5m\n    retry: 2\n    runs_on: [linux, x64]\n    outputs: [v]\n    after:\n      - ${index === 0 ? 's1999' : 's0'}\n`).join('')}`.replace(
        '    after:\n      - s1999\n',
        '',
      );
    expect(parsed(text).stages).toHaveLength(2_000);
  });

  it('a file of exactly 512 KiB is read', () => {
    const head = 'pipeline: {name: p}\nstages:\n  a: {run: x}\n#';
    expect(names(parsed(head + 'x'.repeat(PIPELINE_LIMITS.textBytesMax - head.length)))).toEqual(['a']);
  });

  it('64 levels are read, as far as nesting goes', () => {
    const result = parsePipeline(`a: ${'['.repeat(63)}${']'.repeat(63)}\n`);
    expect(result.ok ? '' : result.diagnostics[0]?.message).toBe("unknown key 'a' at the top of the file");
  });
});
