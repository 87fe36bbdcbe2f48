import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bindingsOf, evaluate, parsePipeline, renderTemplate, truthy } from '../src/index.ts';
import type { Compared, Expression, ExpressionScope } from '../src/index.ts';

const SCOPE: ExpressionScope = {
  stages: {
    build: { status: 'SUCCESS', outputs: { version: '1.10', deploy: 'false', count: '3', empty: '' } },
    'test (node=24)': { status: 'FAILED', outputs: { x: 'y' } },
  },
  matrix: { node: '24' },
  env: { CI: 'true' },
  run: { id: 'r1' },
  pipeline: { name: 'demo' },
  webhook: { ref: 'refs/heads/main' },
  inputs: {},
  success: false,
  failure: true,
};

/** The expression of a condition in a file where every name of the scope exists. */
function expressionOf(text: string): Expression {
  const file = {
    pipeline: { name: 'p' },
    env: { CI: 'true' },
    stages: {
      build: { run: 'x', outputs: ['version', 'deploy', 'count', 'empty', 'missing'] },
      test: { run: 'x', matrix: { node: ['24'] }, outputs: ['x'] },
      it: { run: 'x', after: ['build', 'test'], when: text, matrix: { node: ['24'], none: ['1'] } },
    },
  };
  const result = parsePipeline(JSON.stringify(file), { template: true });
  if (!result.ok) throw new Error(JSON.stringify(result.diagnostics));
  const when = result.definition.stages.at(-1)?.when;
  if (when === undefined) throw new Error('no condition');
  return when;
}

describe('the value of an expression', () => {
  it.each<readonly [string, string | number | boolean | null]>([
    ["'text'", 'text'],
    ["'it''s'", "it's"],
    ['"say \\"hi\\""', 'say "hi"'],
    ['12', 12],
    ['-1.5', -1.5],
    ['true', true],
    ['null', null],
    ['stages.build.outputs.version', '1.10'],
    ["stages['build']['outputs'].version", '1.10'],
    ["stages['test (node=24)'].outputs.x", 'y'],
    ['stages.build.status', 'SUCCESS'],
    ['stages.build.outputs.missing', null],
    ['matrix.node', '24'],
    ['matrix.none', null],
    ['env.CI', 'true'],
    ['run.id', 'r1'],
    ['pipeline.name', 'demo'],
    ['webhook.ref', 'refs/heads/main'],
    ['webhook.commit', null],
    ['success()', false],
    ['failure()', true],
    ['always()', true],
    ["stages.build.outputs.version == '1.10'", true],
    ['stages.build.outputs.version == 1.1', true],
    ["stages.build.outputs.version == '1.1'", false],
    ['stages.build.outputs.count != 3', false],
    ['env.CI == true', true],
    ["'TRUE' == true", false],
    ['true == 1', false],
    ["'a' == 'A'", false],
    ['stages.build.outputs.missing == null', true],
    ["stages.build.outputs.missing == ''", true],
    ['stages.build.outputs.empty == null', true],
    ['null == 0', false],
    ['null == false', false],
    ["'' == 0", false],
    ["success() || 'other'", 'other'],
    ["failure() && 'yes' || 'no'", 'yes'],
    ["success() && 'yes' || 'no'", 'no'],
    ['!success()', true],
    ['!!failure()', true],
    ['!stages.build.outputs.deploy', true],
    ['failure() || success() && success()', true],
    ['(failure() || success()) && success()', false],
    ['1 == 1 == true', true],
    ["run.id=='r1'&&!success()", true],
    ['${{ matrix.node }}', '24'],
    ["  ${{ run.id == '}}' }}  ", false],
  ])('%s is %j', (text, value) => {
    expect(evaluate(expressionOf(text), SCOPE)).toBe(value);
  });

  it('null, false, 0, the empty text and the text false are false; all else is true', () => {
    expect([null, false, 0, '', 'false'].map(truthy)).toEqual([false, false, false, false, false]);
    expect([true, 1, -1, 'true', '0', 'no', ' '].map(truthy)).toEqual([true, true, true, true, true, true, true]);
  });

  it('names that exist on prototypes only are null', () => {
    for (const path of [
      ['constructor'],
      ['run', 'constructor'],
      ['run', '__proto__'],
      ['stages', 'toString'],
      ['stages', 'hasOwnProperty', 'name'],
      ['env', 'CI', 'length'],
    ]) {
      expect(evaluate({ kind: 'path', path }, SCOPE)).toBe(null);
    }
  });

  it('never throws, whatever the tree and the scope', () => {
    const path = fc.array(
      fc.oneof(fc.constantFrom('stages', 'build', 'outputs', '__proto__', 'success', 'run', 'id'), fc.string()),
      { maxLength: 5 },
    );
    const { tree } = fc.letrec<{ tree: Expression }>((tie) => ({
      tree: fc.oneof(
        { maxDepth: 6 },
        fc.record({
          kind: fc.constant('literal' as const),
          value: fc.oneof(fc.string(), fc.double(), fc.boolean(), fc.constant(null)),
        }),
        fc.record({ kind: fc.constant('path' as const), path }),
        fc.record({
          kind: fc.constant('call' as const),
          name: fc.constantFrom('success' as const, 'failure' as const, 'always' as const),
          arguments: fc.constant([]),
        }),
        fc.record({ kind: fc.constant('not' as const), operand: tie('tree') }),
        fc.record({
          kind: fc.constant('binary' as const),
          operator: fc.constantFrom('==' as const, '!=' as const, '&&' as const, '||' as const),
          left: tie('tree'),
          right: tie('tree'),
        }),
      ),
    }));
    fc.assert(
      fc.property(tree, (expression) => {
        const value = evaluate(expression, SCOPE);
        expect(value === null || ['string', 'number', 'boolean'].includes(typeof value)).toBe(true);
        expect(typeof renderTemplate(['a', { expression }], SCOPE)).toBe('string');
      }),
    );
  });
});

describe('long texts', () => {
  const [one, other] = ['one', 'other'].map((name): Expression => ({ kind: 'path', path: ['env', name] }));
  const same = { kind: 'binary', operator: '==', left: one, right: other } as Expression;
  const scopeWith = (env: Record<string, string>, compared: Compared): ExpressionScope => ({ ...SCOPE, env, compared });

  it('that one comparison has compared are not looked through again by it, as long as they are the same', () => {
    const compared: Compared = new WeakMap();
    const [a, b, c] = ['aa', 'aa', 'ab'].map((end) => 'x'.repeat(1_000) + end) as [string, string, string];
    expect(evaluate(same, scopeWith({ one: a, other: b }, compared))).toBe(true);
    expect(compared.get(same)).toEqual({ left: a, right: b, same: true });
    compared.set(same, { left: a, right: b, same: false });
    expect(evaluate(same, scopeWith({ one: a, other: b }, compared))).toBe(false);
    expect(evaluate(same, scopeWith({ one: a, other: c }, compared))).toBe(false);
    expect(evaluate(same, scopeWith({ one: c, other: c }, compared))).toBe(true);
  });

  it('are not kept where their lengths say that they differ', () => {
    const compared: Compared = new WeakMap();
    const long = 'x'.repeat(1_000);
    expect(evaluate(same, scopeWith({ one: long, other: `${long}y` }, compared))).toBe(false);
    expect(compared.has(same)).toBe(false);
  });
});

describe('a comparison that could hold for no run', () => {
  it.each([
    ['matrix.python == 3.10', '3.10'],
    ['matrix.python == 3.1', '3.10'],
    ['matrix.python == 3', '3.0'],
    ['matrix.python == 18014398509481985', '18014398509481985'],
    ["matrix.python == '3.10'", '3.10'],
    ['matrix.python == true', 'true'],
    ['matrix.python == null', '3.9'],
  ])(
    'is not %s where the matrix has %s: a number is compared as a number when the file is read, too',
    (when, value) => {
      const file = { pipeline: { name: 'p' }, stages: { a: { run: 'x', when, matrix: { python: [value] } } } };
      expect(parsePipeline(JSON.stringify(file))).toMatchObject({ ok: true });
    },
  );

  it.each([
    ['matrix.python == 3.11', '3.10'],
    ["matrix.python == '3.1'", '3.10'],
    ['matrix.python == true', 'yes'],
  ])('is %s where the matrix has %s', (when, value) => {
    const file = { pipeline: { name: 'p' }, stages: { a: { run: 'x', when, matrix: { python: [value] } } } };
    const result = parsePipeline(JSON.stringify(file));
    expect(result.ok ? [] : result.diagnostics.map(({ message }) => message)).toEqual([
      expect.stringContaining('so this is always false'),
    ]);
  });
});

describe('templates and bindings', () => {
  it('a missing value is the empty text', () => {
    expect(
      renderTemplate(
        [
          '<',
          { expression: { kind: 'path', path: ['run', 'nothing'] } },
          '>',
          { expression: { kind: 'literal', value: true } },
        ],
        SCOPE,
      ),
    ).toBe('<>true');
  });

  it('no more of it is made than is asked for, and a text within an expression is heard before it is compared', () => {
    const expression = { kind: 'path', path: ['run', 'id'] } as const;
    const part = { expression };
    const id = SCOPE.run['id'] ?? '';
    expect(renderTemplate(['ab', part, 'cd'], SCOPE, 3)).toBe(`ab${id}`.slice(0, 3));
    expect(renderTemplate(['ab', part, 'cd'], SCOPE, 100)).toBe(`ab${id}cd`);
    const heard: string[] = [];
    const text = { kind: 'text', parts: ['a', part] } as const;
    const scope = { ...SCOPE, onText: (each: string) => void heard.push(each) };
    expect(evaluate({ kind: 'binary', operator: '==', left: text, right: expression }, scope)).toBe(false);
    expect(heard).toEqual([`a${id}`]);
  });

  it('one variable stands for one expression, however often the command uses it', () => {
    const result = parsePipeline(
      'pipeline: {name: p}\nstages:\n  a: {run: \'echo ${{ run.id }} "${{run.id}}" ${{ pipeline.name }}\'}\n',
    );
    const command = result.ok ? result.definition.stages[0]?.commands[0] : undefined;
    expect(command?.script).toBe('echo "${PENSTOCK_EXPR_1}" "${PENSTOCK_EXPR_1}" "${PENSTOCK_EXPR_2}"');
    expect(command && bindingsOf(command, SCOPE)).toEqual({ PENSTOCK_EXPR_1: 'r1', PENSTOCK_EXPR_2: 'demo' });
  });

  it('NUL, which no variable can hold, is taken out of a value', () => {
    expect(bindingsOf({ script: '', bindings: { X: { kind: 'literal', value: 'a\0b' } } }, SCOPE)).toEqual({ X: 'ab' });
  });
});
