/** Room for large bodies, and when it is given back. */
import { EventEmitter } from 'node:events';
import { FairRoom } from '@penstock/async';
import { expect, it } from 'vitest';
import { HeldBody } from '../src/intake/held-body.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Room for a body of 100 of one sender. */
function begun() {
  const room = new FairRoom({ shared: 500, own: 0 });
  const response = new EventEmitter();
  const body = new HeldBody(room, 'sender', response);
  const isFree = (): boolean => {
    const isTaken = room.take('sender', 100);
    if (isTaken) room.giveBack('sender', 100);
    return isTaken;
  };
  return { response, body, isFree };
}

it('is held until the response is over, whoever works with the body', async () => {
  const { response, body, isFree } = begun();
  await body.during(async () => body.grow(100));
  expect(isFree()).toBe(false);
  await turn();
  await body.during(async () => {});
  await turn();
  expect(isFree()).toBe(false);
  response.emit('close');
  expect(isFree()).toBe(true);
});

it('is held while somebody works with the body, where its sender has hung up, and between two who do', async () => {
  const { response, body, isFree } = begun();
  await body.during(async () => {
    body.grow(100);
    response.emit('close');
    await turn();
    expect(isFree()).toBe(false);
  });
  const verifying = Promise.withResolvers<void>();
  const handled = body.during(() => verifying.promise);
  for (let turns = 0; turns < 3; turns += 1) await turn();
  expect(isFree()).toBe(false);
  verifying.reject(new Error('a wrong signature'));
  await expect(handled).rejects.toThrow('a wrong signature');
  await turn();
  expect(isFree()).toBe(true);
});

it('is given back where nobody comes to work with a body that is there', async () => {
  const { response, body, isFree } = begun();
  await body.during(async () => body.grow(100));
  response.emit('close');
  await turn();
  expect(isFree()).toBe(true);
});

it('is not taken where there is too much, and what was taken before is given back', () => {
  const { response, body, isFree } = begun();
  body.grow(90);
  expect(() => body.grow(130)).toThrow('Too many large deliveries');
  response.emit('close');
  expect(isFree()).toBe(true);
});
