import { describe, expect, it } from 'vitest';
import { visible, visibleLines } from '../app/parts/unseen.ts';

describe('a text of somebody else', () => {
  it('shows what turns its direction, ends its line or controls a terminal', () => {
    expect(visible('x\u0000\u202ey\u2028')).toBe('x\u2400<U+202E>y<U+2028>');
    expect(visibleLines('a\u0007\r\nb\u007f')).toBe('a\u2407\nb\u2421');
  });

  it.each([
    ['a joiner', '\u200d', '<U+200D>'],
    ['what keeps letters from joining', '\u200c', '<U+200C>'],
    ['a grapheme joiner', '\u034f', '<U+034F>'],
    ['a filler of Hangul', '\u3164', '<U+3164>'],
    ['a vowel of Khmer that is never drawn', '\u17b4', '<U+17B4>'],
    ['a variation selector', '\ufe0f', '<U+FE0F>'],
    ['one of the later ones', '\u{e0100}', '<U+E0100>'],
    ['a tag', '\u{e0041}', '<U+E0041>'],
  ])('shows %s within a word, which reads like the word without it', (_, unseen, shown) => {
    expect(visible(`dep${unseen}loy`)).toBe(`dep${shown}loy`);
  });

  it('keeps emoji whole', () => {
    const emoji = '\u{1f469}\u{1f3fd}\u200d\u{1f4bb} \u2764\ufe0f\u200d\u{1f525} 1\ufe0f\u20e3';
    expect(visible(emoji)).toBe(emoji);
    expect(visible('1\ufe0f0')).toBe('1<U+FE0F>0');
  });

  it('keeps tabs, and letters of every script', () => {
    expect(visible('tab\tשלום नमस्ते สวัสดี 你好')).toBe('tab\tשלום नमस्ते สวัสดี 你好');
  });
});
