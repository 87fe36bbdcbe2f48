import { RateLimited, Unavailable } from '@penstock/errors';
import { expect, it } from 'vitest';
import { OpenPlaces } from '../src/sse/open-places.ts';

it('a user, or an address, that has all its places leaves the others theirs, until all are taken', () => {
  const places = new OpenPlaces({ what: 'downloads', max: 4, perUserMax: 2 });
  const giveBack = places.take('a', '192.0.2.1');
  places.take('a', '192.0.2.2');
  expect(() => places.take('a', '192.0.2.3')).toThrow(RateLimited);
  expect(() => places.take('a', '192.0.2.3')).toThrow('At most 2 downloads of a user');
  places.take(undefined, '192.0.2.3');
  places.take(undefined, '192.0.2.3');
  expect(() => places.take(undefined, '192.0.2.4')).toThrow(Unavailable);
  giveBack();
  expect(() => places.take(undefined, '192.0.2.3')).toThrow(RateLimited);
  places.take('b', '192.0.2.4');
});
