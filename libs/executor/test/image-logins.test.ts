import { describe, expect, it } from 'vitest';
import { imageLogins, withLogins } from '../src/index.ts';

describe('logins of registries', () => {
  it('are what stands before and behind the first colon of a secret', () => {
    const values = new Map([
      ['A', 'robot:pass:word\n'],
      ['B', 'no-colon'],
      ['C', ':nobody'],
      ['D', 'two\nlines:x'],
    ]);
    const { logins, lacking } = imageLogins(['A', 'B', 'C', 'D', 'E'], values);
    expect([...logins]).toEqual([['A', { username: 'robot', password: 'pass:word' }]]);
    expect(lacking).toEqual(
      ['B', 'C', 'D', 'E'].map((name) => `the secret ${name} is no login of a registry, which is user:password`),
    );
  });

  it('go to the images that name them, also of services, and their names go nowhere', () => {
    const { logins } = imageLogins(['A'], new Map([['A', 'robot:word']]));
    const auth = { username: 'robot', password: 'word' };
    const place = {
      image: { name: 'app', secret: 'A' },
      services: [
        { name: 'db', image: { name: 'db', secret: 'A' }, env: {} },
        { name: 'cache', image: { name: 'cache' }, env: {} },
      ],
      network: 'none',
    } as const;
    expect(withLogins(place, logins)).toEqual({
      image: { name: 'app', auth },
      services: [
        { name: 'db', image: { name: 'db', auth }, env: {} },
        { name: 'cache', image: { name: 'cache' }, env: {} },
      ],
      network: 'none',
    });
    expect(withLogins(undefined, logins)).toBeUndefined();
    expect(withLogins(place, new Map())).toBe(place);
  });
});
