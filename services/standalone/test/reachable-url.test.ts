import { expect, it } from 'vitest';
import { reachableUrl } from '../src/reachable-url.ts';

it('a server on all addresses is reached on the loopback one, any other where it says', () => {
  expect(
    [
      'http://0.0.0.0:8080',
      'http://[::]:8080',
      'http://127.0.0.1:8080',
      'http://[::1]:80',
      'http://10.0.0.0:1',
      'http://ci.example:1',
    ].map(reachableUrl),
  ).toEqual([
    'http://127.0.0.1:8080',
    'http://[::1]:8080',
    'http://127.0.0.1:8080',
    'http://[::1]:80',
    'http://10.0.0.0:1',
    'http://ci.example:1',
  ]);
});
