import { expect, it } from 'vitest';
import { lentEnvironment } from '../src/attempt/inherited-environment.ts';

it('gives what is set, and names what is not or would be too much', () => {
  const lacking: string[] = [];
  const env = { HTTPS_PROXY: 'http://proxy:3128', EMPTY: '', LARGE: 'x'.repeat(128 * 1024), OTHER: 'of the server' };
  expect(
    lentEnvironment(env, ['HTTPS_PROXY', 'NO_PROXY', 'LARGE', 'EMPTY'], (name, why) => lacking.push(`${name}: ${why}`)),
  ).toEqual({ HTTPS_PROXY: 'http://proxy:3128', EMPTY: '' });
  expect(lacking).toEqual(['NO_PROXY: it is not set', 'LARGE: all together are more than 131072 bytes']);
});
