import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import { parsePipeline, ServerTemplate } from '@penstock/pipeline';

const PUSH = { repository: 'acme/shop', ref: 'refs/heads/main', commit: 'c'.repeat(40), provider: 'git_host_a' };
const REST = 'stages:\n  a:\n    run: echo ${{ webhook.ref }}\n';

function read(text: string, push = PUSH) {
  const filled = new ServerTemplate(text).filled(push);
  return { filled, parsed: parsePipeline(filled, { template: true }) };
}

function namesOf(text: string, push = PUSH): unknown {
  const { parsed } = read(text, push);
  return parsed.ok ? [parsed.definition.name, parsed.definition.description] : parsed.diagnostics[0]?.message;
}

describe('the template of a server', () => {
  it.each([
    ['plain', 'pipeline:\n  name: tpl ${{ webhook.repository }}\n'],
    ['in quotes', 'pipeline:\n  name: "tpl ${{webhook.repository}}" # as the push says\n'],
    ['in single quotes', "pipeline:\n  name: 'tpl ${{ webhook.repository }}'\n"],
    ['folded', 'pipeline:\n  name: >-\n    tpl\n    ${{ webhook.repository }}\n'],
    ['between braces', "pipeline: {name: 'tpl ${{ webhook.repository }}'}\n"],
    ['with an anchor', "pipeline:\n  name: &tpl 'tpl ${{ webhook.repository }}'\n"],
    ['behind a mark of the order of bytes', '\uFEFFpipeline:\n  name: tpl ${{ webhook.repository }}\n'],
  ])('has the push’s values in its name, %s', (_, head) => {
    expect(namesOf(head + REST)).toEqual(['tpl acme/shop', undefined]);
  });

  it('has them in its description, and stays as it is in all else', () => {
    const text = `pipeline:
  name: "\${{ webhook.repository }}@\${{ webhook.ref }}"
  description: |
    of \${{ webhook.provider }}

    at \${{ webhook.commit }}
${REST}`;
    expect(namesOf(text)).toEqual(['acme/shop@refs/heads/main', `of git_host_a\n\nat ${PUSH.commit}\n`]);
    const { filled } = read(text);
    expect(filled).toContain(REST);
    expect(filled.split('\n')).toHaveLength(text.split('\n').length);
    const plain = `pipeline: {name: plain}\n${REST}`;
    expect(read(plain).filled).toBe(plain);
  });

  it('puts in what is harmless of a value, whatever it says, and no push is refused for its name', () => {
    const head = 'pipeline:\n  name: "${{ webhook.ref }}"\n  description: "of ${{ webhook.ref }}"\n';
    const odd = fc.constantFrom('"\nstages: {}', '${{webhook.commit}}', '$&', '../', '\u0000', '\ud800', '');
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 300 }), odd, (text, more) => {
        const { parsed } = read(head + REST, { ...PUSH, ref: `r${text}${more}` });
        expect(parsed).toMatchObject({ ok: true, definition: { stages: [{ name: 'a' }] } });
        expect(parsed.ok ? parsed.definition.name : '').toMatch(/^r(?:[\p{L}\p{N}_/+-]|\.(?!\.)){0,199}$/u);
      }),
    );
    for (const [ref, name] of [
      ['refs/heads/fix(ui)-größe.1+2', 'refs/heads/fix_ui_-größe.1+2'],
      ['-rf /../x; y', '_rf_/._/x__y'],
      ['/etc/$HOME', '_etc/_HOME'],
      ['x'.repeat(201), 'x'.repeat(200)],
    ] as const)
      expect(namesOf(`pipeline:\n  name: "\${{ webhook.ref }}"\n${REST}`, { ...PUSH, ref })).toEqual([name, undefined]);
  });

  it('has nothing computed in its name, and no text of elsewhere', () => {
    const other = 'env:\n  X: &x ${{ webhook.ref }}\npipeline:\n  name: *x\n';
    for (const head of [
      other,
      'pipeline:\n  name: "${{ webhook.ref == \'x\' }}"\n',
      'pipeline:\n  name: "${{ run.id }}"\n',
    ])
      expect(namesOf(head + REST), head).toContain('cannot hold an expression');
  });

  it('that cannot be read stays as it is', () => {
    for (const text of ['pipeline: {name: "${{ webhook.ref }}"', 'pipeline: ${{ webhook.ref }}\n', '', '- a'])
      expect(new ServerTemplate(text).filled(PUSH)).toBe(text);
  });
});
