import { describe, expect, it } from 'vitest';
import { jwtSecretsOf } from '../src/index.ts';

describe('JWT_SECRET', () => {
  it.each([
    ['one', ['one']],
    ['new,old', ['new', 'old', 'new,old']],
    ['new, old ,', ['new', 'old', 'new, old ,']],
    ['new,new', ['new', 'new,new']],
    ['one,', ['one', 'one,']],
    [',', [',']],
    ['', ['']],
  ])('%j is %j: the whole text last, for it may be one secret of an earlier release', (given, secrets) => {
    expect(jwtSecretsOf(given)).toEqual(secrets);
  });
});
