import { afterAll, describe, expect, it } from 'vitest';
import { letStagesIn } from '../src/process/file-modes.ts';

const before = process.umask(0o022);
afterAll(() => void process.umask(before));

const isRoot = process.getuid?.() === 0;

describe('letStagesIn', () => {
  it.each([
    { given: '077', left: '022', why: 'stages run as other users' },
    { given: '027', left: '022', why: 'they have other groups' },
    { given: '022', left: '022', why: 'it is the usual' },
    { given: '002', left: '002', why: 'a group that may write is its owner’s wish' },
    { given: '000', left: '000', why: 'it keeps nobody out' },
  ])('leaves $left of $given: $why', ({ given, left }) => {
    process.umask(given);
    letStagesIn();
    // Without root all is the owner's own.
    expect(process.umask(0)).toBe(Number.parseInt(isRoot ? left : given, 8));
  });
});
