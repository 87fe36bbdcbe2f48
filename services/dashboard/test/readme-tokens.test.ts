import { lexer } from 'marked';
import { describe, expect, it } from 'vitest';
import { tokensOf } from '../app/pages/readme-tokens.ts';

const { signal } = new AbortController();

describe('a readme', () => {
  it('is read as Markdown is, its references and nested lists included', async () => {
    const text =
      '# A *b*\r\n\r\nSee [c] and `d`.\n\n- one\n  - two **three**\n\n> quoted\n\n| a | b |\n|---|---|\n| `x` | y |\n\n```sh\ne\n```\n\n[c]: https://example.org\n';
    expect(await tokensOf(text, signal)).toEqual(lexer(text));
  });

  it.each([
    ['emphasis', '_a_b'.repeat(50_000)],
    ['stars', '**a'.repeat(66_000)],
    ['an address', `${'a.'.repeat(99_000)}@`],
  ])('of one paragraph that takes minutes to be read is shown as it stands: %s', async (_what, text) => {
    const [paragraph] = (await tokensOf(text, signal)) ?? [];
    expect(paragraph).toMatchObject({ type: 'paragraph', tokens: [{ type: 'text', raw: text }] });
  });

  it.each([
    ['quotes deeper than anybody writes', '> '.repeat(100_000)],
    ['lists and quotes in turns', '1. > '.repeat(40_000)],
    ['an item of a hundred thousand lines', `- ${'a\n'.repeat(99_000)}`],
    ['tens of thousands of words, each in an element of its own', '*a* b\n\n'.repeat(28_000)],
    ['lists and quotes of some depth, in tens of thousands', `${'- > '.repeat(22)}a\n\n`.repeat(2_200)],
  ])('that takes minutes or the stack as a whole is plain text: %s', async (_what, text) => {
    expect(await tokensOf(`a\n\n${text}`, signal)).toBeNull();
  });

  it('of tens of thousands of elements without any text in them is plain text', async () => {
    expect(await tokensOf('***\n\n'.repeat(40_000), signal)).toBeNull();
  });
});
