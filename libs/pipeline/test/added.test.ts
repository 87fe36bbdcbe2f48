import { describe, expect, it } from 'vitest';
import { diagnosticLine, parsePipeline, parseRemembered, type AddedBy, type PipelineDefinition } from '../src/index.ts';

const BY: AddedBy = {
  stage: 'plan',
  depth: 1,
  ceiling: { secrets: ['TOKEN'], audiences: ['https://sts.example'] },
  env: { WHO: ['world'] },
  inputs: [],
};

function read(text: string, more: Partial<AddedBy> = {}): PipelineDefinition {
  const parsed = parsePipeline(text, { added: { ...BY, ...more } });
  if (!parsed.ok) throw new Error(parsed.diagnostics.map(diagnosticLine).join('\n'));
  return parsed.definition;
}

function problems(text: string, more: Partial<AddedBy> = {}): string[] {
  const parsed = parsePipeline(text, { added: { ...BY, ...more } });
  return parsed.ok ? [] : parsed.diagnostics.map(diagnosticLine);
}

describe('a text that a stage adds to its run', () => {
  it('is a map of stages that come after it, named within it, with the variables of the file', () => {
    const { stages } = read(
      'a: {run: x, outputs: [v]}\nb: {after: a, run: "echo ${{ stages.a.outputs.v }}", env: {B: "1"}}',
    );
    expect(stages.map(({ name, after }) => [name, after])).toEqual([
      ['plan/a', ['plan']],
      ['plan/b', ['plan/a']],
    ]);
    expect({ ...stages[1]?.env }).toEqual({ WHO: ['world'], B: ['1'] });
    expect(Object.values(stages[1]?.commands[0]?.bindings ?? {})).toEqual([
      { kind: 'path', path: ['stages', 'plan/a', 'outputs', 'v'] },
    ]);
  });

  it('expands its matrices', () => {
    const { stages } = read('a: {matrix: {n: [1, 2]}, run: x}\nb: {after: a, run: x}');
    expect(stages.map(({ name, matrix }) => [name, matrix?.of])).toEqual([
      ['plan/a (n=1)', 'plan/a'],
      ['plan/a (n=2)', 'plan/a'],
      ['plan/b', undefined],
    ]);
    expect(stages[2]?.after).toEqual(['plan/a (n=1)', 'plan/a (n=2)']);
  });

  it('has no name that the run has already, and none that one beside it may give', () => {
    const taken = ['plan/a', 'plan/b/c'];
    expect(problems('a: {run: x}', { taken })).toEqual([
      "line 1, column 1: the run has a stage 'plan/a' already, or others under that name (give it another name)",
    ]);
    expect(problems('x: {run: x}\nb: {run: x}', { taken })[0]).toContain(
      "line 2, column 1: the run has a stage 'plan/b'",
    );
    expect(problems('g: {run: x, generates: true}\ng/x: {run: x}')[0]).toContain(
      "'g/x' is called as one that 'g' may add",
    );
    read('c: {run: x}', { taken });
  });

  it('uses what the file uses', () => {
    expect(problems('a: {uses: build/node@^2}')).toEqual([
      "line 1, column 11: extension 'build/node@^2' is not among those of the run (stages that are added use what the pipeline file uses, by the very text of its 'uses')",
    ]);
  });

  it.each(['', '\n', '# nothing\n', '{}', '~'])('%j adds nothing', (text) => {
    expect(read(text).stages).toEqual([]);
  });

  it('names what the adding stage allows, and nothing else', () => {
    read('a: {run: x, secrets: [TOKEN], id_token: {audience: https://sts.example}}');
    expect(problems('a: {run: x, secrets: [OTHER]}')).toEqual([
      "line 1, column 13: the secret 'OTHER' is not among those that 'plan' may hand on (name it under 'generates.secrets' of 'plan')",
    ]);
    expect(problems('a: {run: x, id_token: {audience: elsewhere}}')).toEqual([
      "line 1, column 13: the audience 'elsewhere' is not among those that 'plan' may hand on (name it under 'generates.id_token' of 'plan')",
    ]);
    expect(problems('a: {run: x, image: {name: i, auth: OTHER}}')[0]).toContain("the secret 'OTHER'");
    expect(problems('a: {run: x, image: {name: i, auth: TOKEN}}')).toEqual([]);
    expect(problems('a: {run: x, generates: {secrets: [OTHER]}}')[0]).toContain("the secret 'OTHER'");
    expect(read('a: {run: x, generates: {secrets: [TOKEN]}}').stages[0]?.generates).toEqual({
      secrets: ['TOKEN'],
      audiences: [],
    });
  });

  it('may add others in its turn, three deep', () => {
    expect(problems('a: {run: x, generates: true}', { depth: 2 })).toEqual([]);
    expect(problems('a: {run: x, generates: true}', { depth: 3 })).toEqual([
      'line 1, column 13: this stage cannot add others: stages that were added add stages 3 deep at most',
    ]);
  });

  it.each([
    ['a: {after: plan, run: x}', "comes after 'plan', which is not a stage"],
    ['a: {run: "echo ${{ stages.plan.status }}"}', "there is no stage 'plan'"],
    ['a: {run: x, uses: build/node@^1}', "'run' cannot stand beside 'uses'"],
    ['a: {uses: build/node@^1}', 'is not among those of the run'],
    ['- a', 'is a map of stages, not a list'],
    ['pipeline: {name: p}\nstages: {a: {run: x}}', "write what stands under 'stages' alone"],
    [`a: {run: ${JSON.stringify('x'.repeat(256 * 1024))}}`, 'larger than 256 KiB'],
    ['[[[[['.repeat(400), 'nested'],
  ])('%.60s is refused', (text, message) => {
    expect(problems(text).join('\n')).toContain(message);
  });

  it('is bounded before it is expanded', () => {
    const axis = Array.from({ length: 256 }, (_, index) => index).join(', ');
    const stages = Array.from({ length: 12 }, (_, index) => `s${index}: {run: x, matrix: {n: [${axis}]}}`);
    expect(problems(stages.join('\n')).join('\n')).toContain('more than 2,000 stages');
    const bomb = ['a: &a [x, x, x, x, x, x, x, x]'];
    for (let level = 0; level < 8; level++)
      bomb.push(
        `${'bcdefghi'[level]}: &${'bcdefghi'[level]} [${Array.from({ length: 8 }, () => `*${'abcdefgh'[level]}`).join(', ')}]`,
      );
    expect(problems(bomb.join('\n'))).not.toEqual([]);
  });

  it('means something else than the same text as a file', () => {
    const text = 'pipeline: {name: p}\nstages: {a: {run: x}}';
    expect(parseRemembered(text).ok).toBe(true);
    expect(parseRemembered(text, { added: BY }).ok).toBe(false);
  });
});

describe('generates', () => {
  it('keeps what texts are read with beside the stages of its file, and only there', () => {
    const text = (generates: string) => `pipeline: {name: p}\nenv: {A: b}\nstages: {s: {run: x${generates}}}`;
    const plain = parsePipeline(text(''));
    expect(plain.ok && plain.definition).not.toHaveProperty('generation');
    const off = parsePipeline(text(', generates: false'));
    expect(off.ok && off.definition.stages[0]).not.toHaveProperty('generates');
    const adding = parsePipeline(text(', generates: {secrets: [A, B], id_token: [x]}'));
    if (!adding.ok) throw new Error('refused');
    expect(adding.definition.stages[0]?.generates).toEqual({ secrets: ['A', 'B'], audiences: ['x'] });
    expect({ ...adding.definition.generation?.env }).toEqual({ A: ['b'] });
  });
});
