import { describe, expect, it } from 'vitest';
import { diagnosticLine, evaluate, parsePipeline, renderTemplate, truthy, usesOf } from '../src/index.ts';
import type { ExpressionScope, PipelineDefinition, ResolvedExtension, StageDefinition } from '../src/index.ts';
import { extension, HASH, SUITE } from './suite-extension.ts';

const GREET = extension(
  'utility/greet@^1',
  `run: |
  echo "Hello \${{ inputs.who }}, \${{ inputs.times }} times, in \${{ env.TONE }} tone"
outputs: [greeting]
env: {TONE: 'soft \${{ inputs.who }}'}
inputs:
  who: {description: Whom, required: true}
  times: {type: number, default: 1}
  loud: {type: boolean, default: false}
  lang-code: {type: choice, options: [en, fr], default: en}
`,
);

function parsed(stages: string, extensions: readonly ResolvedExtension[] = [GREET, SUITE]): PipelineDefinition {
  const result = parsePipeline(`pipeline: {name: p}\nenv: {TOP: top}\nstages:\n${stages}`, { extensions });
  if (!result.ok) throw new Error(result.diagnostics.map(diagnosticLine).join('\n'));
  return result.definition;
}

function refused(stages: string, extensions: readonly ResolvedExtension[] = [GREET, SUITE]): string[] {
  const result = parsePipeline(`pipeline: {name: p}\nstages:\n${stages}`, { extensions });
  return result.ok ? [] : result.diagnostics.map(diagnosticLine);
}

function stage(definition: PipelineDefinition, name: string): StageDefinition {
  const found = definition.stages.find((candidate) => candidate.name === name);
  if (found === undefined)
    throw new Error(`no ${name} among ${definition.stages.map((candidate) => candidate.name).join(', ')}`);
  return found;
}

function scope(
  stages: Record<string, { status: string; outputs?: Record<string, string> }> = {},
  own: Partial<ExpressionScope> = {},
): ExpressionScope {
  const known = Object.fromEntries(
    Object.entries(stages).map(([name, { status, outputs }]) => [name, { status, outputs: outputs ?? {} }]),
  );
  return {
    stages: known,
    matrix: {},
    env: {},
    run: { id: 'r' },
    pipeline: { name: 'p' },
    webhook: {},
    inputs: {},
    success: true,
    failure: false,
    ...own,
  };
}

function variables(definition: StageDefinition, values: ExpressionScope): Record<string, string> {
  return Object.fromEntries(
    Object.entries(definition.env).map(([name, template]) => [name, renderTemplate(template, values)]),
  );
}

describe('the uses of a text', () => {
  it('are found also where the key is written with escapes', () => {
    expect(usesOf('pipeline: {name: p}\nstages: {a: {"\\x75ses": build/node@^1}}\n')).toEqual(['build/node@^1']);
  });
});

describe('an extension with a command', () => {
  const USE =
    "  a: {run: make, outputs: [who]}\n  hi:\n    uses: utility/greet@^1\n    after: a\n    with: {who: 'dear ${{ stages.a.outputs.who }}', times: 3}\n";

  it('gives the stage its command, its outputs and itself', () => {
    const hi = stage(parsed(USE), 'hi');
    expect(hi.extension).toEqual({ id: 'utility/greet', version: '1.2.3', hash: HASH });
    expect(hi.outputs).toEqual(['greeting']);
    expect(hi.commands[0]?.script).toBe(
      'echo "Hello ${PENSTOCK_EXPR_1}, ${PENSTOCK_EXPR_2} times, in ${PENSTOCK_EXPR_3} tone"\n',
    );
  });

  it('inputs reach it as variables and as expressions, never as text of the script', () => {
    const hi = stage(parsed(USE), 'hi');
    const values = scope({ a: { status: 'SUCCESS', outputs: { who: '$(rm -rf ~)' } } });
    const env = variables(hi, values);
    expect(env).toEqual({
      TOP: 'top',
      TONE: 'soft dear $(rm -rf ~)',
      INPUT_WHO: 'dear $(rm -rf ~)',
      INPUT_TIMES: '3',
      INPUT_LOUD: 'false',
      INPUT_LANG_CODE: 'en',
    });
    const bound = Object.values(hi.commands[0]?.bindings ?? {}).map((expression) =>
      evaluate(expression, { ...values, env }),
    );
    expect(bound).toEqual(['dear $(rm -rf ~)', '3', 'soft dear $(rm -rf ~)']);
  });

  it("a stage's own env wins over the extension's, and nothing over an input", () => {
    const { env } = stage(
      parsed('  hi: {uses: utility/greet@^1, with: {who: me}, env: {TONE: own, INPUT_WHO: other}}\n'),
      'hi',
    );
    expect([env['TONE'], env['INPUT_WHO']]).toEqual([['own'], ['me']]);
  });

  it('a required input whose value is at fault is not also called missing', () => {
    expect(refused('  hi: {uses: utility/greet@^1, with: {who: [x]}}\n')).toEqual([
      "line 3, column 44: the input 'who' must be a text, a number or a boolean, not a list",
    ]);
    expect(refused(`  hi: {uses: utility/greet@^1, with: {who: ${'x'.repeat(40_000)}}}\n`)).toEqual([
      "line 3, column 44: the value of 'who' is longer than 32 KiB",
    ]);
  });

  it("with knows the stage's variables and its matrix", () => {
    const definition = parsed(
      "  hi:\n    uses: utility/greet@^1\n    env: {NAME: 'n-${{ matrix.n }}'}\n    with: {who: '${{ env.NAME }} ${{ env.TOP }}', times: '${{ matrix.n }}'}\n    matrix: {n: [1, 2]}\n",
    );
    const second = stage(definition, 'hi (n=2)');
    expect(variables(second, scope({}, { matrix: second.matrix?.values ?? {} }))).toMatchObject({
      INPUT_WHO: 'n-2 top',
      INPUT_TIMES: '2',
    });
  });

  it('inputs are checked against their types where they stand', () => {
    expect(
      refused('  hi:\n    uses: utility/greet@^1\n    with: {whom: x, times: three, loud: yes, lang-code: fx}\n'),
    ).toEqual([
      "line 4, column 11: extension 'utility/greet' needs the input 'who' (add 'with: {who: …}')",
      "line 5, column 12: extension 'utility/greet' has no input 'whom' (did you mean 'who'?)",
      "line 5, column 28: the input 'times' must be a number, not 'three'",
      "line 5, column 41: the input 'loud' must be true or false, not 'yes' (did you mean true?)",
      "line 5, column 57: the input 'lang-code' must be one of 'en', 'fr', not 'fx' (did you mean 'fr'?)",
    ]);
    expect(
      refused(
        "  hi:\n    uses: utility/greet@^1\n    with: {who: x, times: '${{ matrix.n }}'}\n    matrix: {n: [1, two]}\n",
      ),
    ).toEqual(["line 5, column 27: the input 'times' must be a number, not 'two' (in 'hi (n=two)')"]);
  });

  it('its outputs are those that its manifest names', () => {
    const after = (output: string): string[] =>
      refused(
        `  hi: {uses: utility/greet@^1, with: {who: x}}\n  b: {run: 'echo "\${{ stages.hi.outputs.${output} }}"', after: hi}\n`,
      );
    expect(after('greeting')).toEqual([]);
    expect(after('greetin')).toEqual([
      "line 4, column 23: stage 'hi' has no output 'greetin' (did you mean 'greeting'?)",
    ]);
  });
});

describe('an extension with stages', () => {
  const definition = parsed(
    '  a: {run: make}\n  s: {uses: test/suite@^1, after: a, with: {target: x86}, timeout: 7m, retry: 2}\n  z: {run: \'echo "${{ stages.s.outputs.version }} ${{ stages.s.outputs.label }} ${{ stages.s.status }}"\', after: s}\n',
  );

  it('becomes its stages, named after the stage that uses it', () => {
    expect(definition.stages.map(({ name, after }) => [name, after])).toEqual([
      ['a', []],
      ['s/compile', ['a']],
      ['s/unit', ['s/compile']],
      ['s/lint', ['s/compile']],
      ['s/clean', ['s/unit', 's/lint']],
      ['z', ['s/clean']],
    ]);
    expect(definition.stages.slice(1, 5).map(({ extension: from }) => from?.id)).toEqual(
      Array.from({ length: 4 }, () => 'test/suite'),
    );
  });

  it('what the using stage says holds for those inside that say nothing', () => {
    expect(definition.stages.map(({ timeoutMs, retry }) => [timeoutMs / 60_000, retry.max])).toEqual([
      [60, 0],
      [7, 2],
      [7, 2],
      [5, 2],
      [7, 2],
      [60, 0],
    ]);
  });

  it('names mean the stages inside, and outputs and status are known under the outer name', () => {
    const values = scope({
      's/compile': { status: 'SUCCESS', outputs: { version: '3' } },
      's/unit': { status: 'SUCCESS' },
      's/lint': { status: 'FAILED' },
      's/clean': { status: 'SUCCESS' },
    });
    const bound = (name: string): unknown[] =>
      Object.values(stage(definition, name).commands[0]?.bindings ?? {}).map((expression) =>
        evaluate(expression, values),
      );
    expect(bound('s/unit')).toEqual(['3']);
    expect(bound('s/compile')).toEqual(['x86']);
    expect(bound('z')).toEqual(['3', 'x86-3', 'FAILED']);
    expect(variables(stage(definition, 's/lint'), values)).toEqual({
      TOP: 'top',
      MODE: 'fast',
      INPUT_TARGET: 'x86',
      INPUT_MODE: 'fast',
    });
  });

  it('status is the worst inside, SKIPPED where all of it was', () => {
    const status = (...statuses: string[]): unknown => {
      const values = scope(
        Object.fromEntries(
          ['compile', 'unit', 'lint', 'clean'].map((name, index) => [
            `s/${name}`,
            { status: statuses[index] ?? 'SUCCESS' },
          ]),
        ),
      );
      return evaluate(
        Object.values(stage(definition, 'z').commands[0]?.bindings ?? {})[2] ?? { kind: 'literal', value: null },
        values,
      );
    };
    expect([
      status(),
      status('SUCCESS', 'CANCELLED'),
      status('SKIPPED', 'SKIPPED', 'SKIPPED', 'SKIPPED'),
      status('SUCCESS', 'SKIPPED'),
    ]).toEqual(['SUCCESS', 'CANCELLED', 'SKIPPED', 'SUCCESS']);
  });

  it('nothing of it runs where the stage that uses it is skipped, also not what asks for always()', () => {
    const inside = parsed(
      '  a: {run: make}\n  s: {uses: test/suite@^1, after: a, when: failure(), with: {target: x}}\n',
    );
    const [first, clean] = [stage(inside, 's/compile'), stage(inside, 's/clean')];
    expect([first.runsAfterFailure, clean.runsAfterFailure, stage(inside, 's/lint').runsAfterFailure]).toEqual([
      true,
      true,
      false,
    ]);
    const holds = (of: StageDefinition, values: ExpressionScope): boolean =>
      of.when === undefined || truthy(evaluate(of.when, values));
    expect(holds(first, scope({}, { success: false, failure: true }))).toBe(true);
    expect(holds(first, scope())).toBe(false);
    expect(holds(clean, scope({ 's/compile': { status: 'SKIPPED' } }))).toBe(false);
    expect(holds(clean, scope({ 's/compile': { status: 'FAILED' } }))).toBe(true);
  });

  it('a first stage inside that asks for always() waits for the outer stage all the same', () => {
    const eager = extension(
      'utility/eager@1.0.0',
      'stages:\n  one: {run: x, when: always()}\n  two: {run: x, when: "failure()"}\n',
    );
    const { stages } = parsed('  a: {run: make}\n  e: {uses: utility/eager@1.0.0, after: a}\n', [eager]);
    expect(stages.slice(1).map(({ name, runsAfterFailure, when }) => [name, runsAfterFailure, when])).toEqual([
      ['e/one', false, { kind: 'literal', value: true }],
      ['e/two', false, { kind: 'literal', value: false }],
    ]);
  });

  it('in a matrix each combination has stages of its own, and its values are filled in', () => {
    const matrix = parsed(
      "  s:\n    uses: test/suite@^1\n    with: {target: 'os-${{ matrix.os }}'}\n    env: {OS: '${{ matrix.os }}'}\n    matrix: {os: [linux, mac], max_parallel: 1}\n  z: {run: x, after: s}\n  y: {run: 'echo \"${{ stages[''s (os=mac)''].outputs.label }}\"', after: s (os=mac)}\n",
    );
    expect(matrix.stages.map(({ name }) => name)).toEqual([
      's (os=linux)/compile',
      's (os=linux)/unit',
      's (os=linux)/lint',
      's (os=linux)/clean',
      's (os=mac)/compile',
      's (os=mac)/unit',
      's (os=mac)/lint',
      's (os=mac)/clean',
      'z',
      'y',
    ]);
    expect(stage(matrix, 'z').after).toEqual(['s (os=linux)/clean', 's (os=mac)/clean']);
    expect(stage(matrix, 'y').after).toEqual(['s (os=mac)/clean']);
    const unit = stage(matrix, 's (os=mac)/unit');
    expect(unit.matrix).toEqual({ of: 's/unit', values: { os: 'mac' }, maxParallel: 1, failFast: true });
    expect([unit.env['INPUT_TARGET'], unit.env['OS']]).toEqual([['os-mac'], ['mac']]);
    const [label] = Object.values(stage(matrix, 'y').commands[0]?.bindings ?? {});
    expect(
      label && evaluate(label, scope({ 's (os=mac)/compile': { status: 'SUCCESS', outputs: { version: '9' } } })),
    ).toBe('os-mac-9');
  });

  it('a matrix inside keeps its own values, and they are shared within one use only', () => {
    const inner = extension(
      'test/many@1.0.0',
      "stages:\n  t: {run: 'x ${{ matrix.n }}', matrix: {n: [1, 2], fail_fast: false}}\n",
    );
    const { stages } = parsed('  a: {uses: test/many@1.0.0}\n  b: {uses: test/many@1.0.0, after: a}\n', [inner]);
    expect(stages.map(({ name, matrix }) => [name, matrix?.of, matrix?.values['n']])).toEqual([
      ['a/t (n=1)', 'a/t', '1'],
      ['a/t (n=2)', 'a/t', '2'],
      ['b/t (n=1)', 'b/t', '1'],
      ['b/t (n=2)', 'b/t', '2'],
    ]);
    expect(stages[3]?.after).toEqual(['a/t (n=1)', 'a/t (n=2)']);
  });

  it('extensions can use others, whose inputs are given in terms of their own', () => {
    const outer = extension(
      'build/all@2.0.0',
      "inputs: {name: {default: n}}\noutputs: {label: {value: '${{ stages.suite.outputs.label }}'}}\nstages:\n  prepare: {run: x}\n  suite: {uses: test/suite@^1, after: prepare, with: {target: 't-${{ inputs.name }}', mode: full}}\n  greet: {uses: utility/greet@^1, after: suite, with: {who: '${{ stages.suite.outputs.label }}'}}\n",
    );
    const nested = parsed(
      '  all: {uses: build/all@2.0.0, with: {name: deep}}\n  z: {run: \'echo "${{ stages.all.outputs.label }}"\', after: all}\n',
      [outer, SUITE, GREET],
    );
    expect(nested.stages.map(({ name, after }) => [name, after])).toEqual([
      ['all/prepare', []],
      ['all/suite/compile', ['all/prepare']],
      ['all/suite/unit', ['all/suite/compile']],
      ['all/suite/lint', ['all/suite/compile']],
      ['all/suite/clean', ['all/suite/unit', 'all/suite/lint']],
      ['all/greet', ['all/suite/clean']],
      ['z', ['all/greet']],
    ]);
    const values = scope({ 'all/suite/compile': { status: 'SUCCESS', outputs: { version: '7' } } });
    expect(variables(stage(nested, 'all/greet'), values)['INPUT_WHO']).toBe('t-deep-7');
    expect(stage(nested, 'all/greet').extension?.id).toBe('utility/greet');
    expect(stage(nested, 'all/suite/lint').env['MODE']).toEqual(['full']);
  });

  it('a folder inside is a folder of the folder outside', () => {
    const inner = extension(
      'build/dir@1.0.0',
      'inputs: {sub: {default: s}}\nstages:\n  a: {run: x, workdir: "in/${{ inputs.sub }}"}\n  b: {run: x}\n',
    );
    expect(
      parsed('  d: {uses: build/dir@1.0.0, workdir: out}\n', [inner]).stages.map(({ workdir }) => workdir),
    ).toEqual([['out', '/', 'in/', 's'], ['out']]);
  });

  it('what stands beside uses means what it means in the file, whatever the extension calls its variables', () => {
    const own = extension('build/own@1.0.0', 'env: {TOP: theirs}\nrun: x\n');
    const [used] = parsed("  a: {uses: build/own@1.0.0, when: env.TOP == 'top', workdir: '${{ env.TOP }}'}\n", [
      own,
    ]).stages;
    const values = scope({}, { env: variables(used ?? stage(definition, 'a'), scope()) });
    expect([
      values.env['TOP'],
      used?.when && evaluate(used.when, values),
      used?.workdir && renderTemplate(used.workdir, values),
    ]).toEqual(['theirs', true, 'top']);
  });

  it('its names cannot be those of other stages', () => {
    expect(refused('  s: {uses: test/suite@^1, with: {target: x}}\n  s/unit: {run: x}\n')).toEqual([
      "line 4, column 3: two stages would have the name 's/unit'",
    ]);
  });
});

describe('what does not fit is refused where it is used', () => {
  it('a manifest that belongs to another extension is refused', () => {
    const wrong = { ...GREET, manifest: GREET.manifest.replace('id: utility/greet', 'id: utility/other') };
    expect(refused('  a: {uses: utility/greet@^1, with: {who: x}}\n', [wrong])).toEqual([
      "line 3, column 13: extension 'utility/greet@^1' was resolved to 'utility/greet@1.2.3', and its manifest is of 'utility/other@1.2.3'",
    ]);
    expect(refused('  a: {uses: utility/other@^1}\n', [{ ...GREET, uses: 'utility/other@^1' }])[0]).toContain(
      'was resolved to',
    );
  });

  it('a manifest that this version refuses', () => {
    const bad = extension('build/bad@1.0.0', 'run: x\nsecret: y\n');
    expect(refused('  a: {uses: build/bad@1.0.0}\n', [bad])).toEqual([
      "line 3, column 13: extension 'build/bad@1.0.0' cannot be used: its extension.yaml is refused, line 5, column 1: unknown key 'secret' in the manifest (there are 'id', 'version', 'description', 'inputs', 'outputs', 'env', 'run', 'shell', 'image', 'services', 'resources', 'network' and 'stages')",
    ]);
  });

  it('one that uses itself, by any way', () => {
    const ring = [
      extension('build/one@1.0.0', 'stages: {a: {uses: build/two@1.0.0}}\n'),
      extension('build/two@1.0.0', 'stages: {a: {uses: build/one@1.0.0}}\n'),
    ];
    expect(refused('  a: {uses: build/one@1.0.0}\n', ring)[0]).toContain(
      "extension 'build/one@1.0.0' uses itself: 'build/one@1.0.0' uses 'build/two@1.0.0' uses 'build/one@1.0.0'",
    );
  });

  it('more than five levels of them, whichever is used first', () => {
    const chain = Array.from({ length: 7 }, (_, level) =>
      extension(`build/l${level}@1.0.0`, level === 6 ? 'run: x\n' : `stages: {a: {uses: build/l${level + 1}@1.0.0}}\n`),
    );
    const use = (...levels: number[]): string[] =>
      refused(levels.map((level) => `  s${level}: {uses: build/l${level}@1.0.0}\n`).join(''), chain);
    expect(use(2)).toEqual([]);
    expect(use(1)[0]).toContain('more than 5 levels deep');
    expect(use(2, 1)[0]).toContain('more than 5 levels deep');
  });

  it('more stages than a run can have', () => {
    const wide = extension(
      'build/wide@1.0.0',
      `stages:\n${Array.from({ length: 300 }, (_, index) => `  s${index}: {run: x}\n`).join('')}`,
    );
    expect(
      refused(Array.from({ length: 7 }, (_, index) => `  u${index}: {uses: build/wide@1.0.0}\n`).join(''), [wide]),
    ).toEqual(['line 9, column 3: more than 2,000 stages after the extensions are expanded']);
    const deep = [
      wide,
      extension(
        'build/x@1.0.0',
        `stages:\n${Array.from({ length: 300 }, (_, index) => `  s${index}: {uses: build/wide@1.0.0}\n`).join('')}`,
      ),
    ];
    expect(refused('  a: {uses: build/x@1.0.0}\n', deep)).toEqual([
      'line 3, column 3: more than 2,000 stages after the extensions are expanded',
    ]);
  });

  it('inputs within inputs that would multiply', () => {
    const many = (level: number): string =>
      `inputs: {i: {default: ''}}\nstages:\n  a:\n    uses: build/m${level + 1}@1.0.0\n    with: {i: "${Array.from({ length: 90 }, () => '${{ inputs.i }}').join('')}"}\n`;
    const chain = [
      ...[0, 1, 2, 3].map((level) => extension(`build/m${level}@1.0.0`, many(level))),
      extension('build/m4@1.0.0', 'inputs: {i: {default: x}}\nrun: x\n'),
    ];
    expect(
      refused("  a: {uses: build/m0@1.0.0, with: {i: '${{ run.id }} ${{ pipeline.name }}'}}\n", chain)[0],
    ).toContain('has more than 2,000 parts');
  });

  it('conditions that would multiply', () => {
    const names = (from: number, count: number): string[] =>
      Array.from({ length: count }, (_, index) => `s${from + index}`);
    const first = names(0, 400)
      .map((name) => `  ${name}: {run: x}\n`)
      .join('');
    const always = names(400, 100)
      .map((name) => `  ${name}: {run: x, after: [${names(0, 400).join(', ')}], when: always()}\n`)
      .join('');
    expect(
      refused('  a: {uses: build/cross@1.0.0}\n  b: {uses: build/cross@1.0.0}\n  c: {uses: build/cross@1.0.0}\n', [
        extension('build/cross@1.0.0', `stages:\n${first}${always}`),
      ])[0],
    ).toMatch(/is refused|more than/);
  });

  it('more dependencies than a run can have', () => {
    const wide = extension(
      'build/wide@1.0.0',
      `stages:\n${Array.from({ length: 400 }, (_, index) => `  s${index}: {run: x}\n`).join('')}`,
    );
    expect(refused('  a: {uses: build/wide@1.0.0}\n  b: {uses: build/wide@1.0.0, after: a}\n', [wide])).toEqual([
      'line 4, column 3: the stages have more than 100,000 dependencies after the extensions are expanded',
    ]);
  });

  it('what whoever resolves has refused, in its own words', () => {
    const result = parsePipeline('pipeline: {name: p}\nstages:\n  a: {uses: build/nod@^1}\n', {
      refusals: new Map([['build/nod@^1', "There is no extension 'build/nod'; did you mean 'build/node'?"]]),
    });
    expect(result.ok ? [] : result.diagnostics.map(diagnosticLine)).toEqual([
      "line 3, column 13: There is no extension 'build/nod'; did you mean 'build/node'?",
    ]);
  });

  it('nothing, where unresolved ones are accepted', () => {
    const result = parsePipeline(
      'pipeline: {name: p}\nstages:\n  a: {uses: build/node@^1, with: {x: y}}\n  b: {run: "echo ${{ stages.a.outputs.any }}", after: a}\n',
      { unresolved: 'accept' },
    );
    expect(
      result.ok ? result.definition.stages.map(({ name, commands }) => [name, commands.length]) : result.diagnostics,
    ).toEqual([
      ['a', 0],
      ['b', 1],
    ]);
  });
});
