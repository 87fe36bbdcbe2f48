import { describe, expect, it } from 'vitest';
import { Slots } from '../src/slots.ts';

/** Holds each slot until the test says so; a name is `<key>.<server>`. */
function held(count: number, waitingMax = 100) {
  const slots = new Slots(count, waitingMax);
  const entered: string[] = [];
  const ends = new Map<string, () => void>();
  const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  return {
    entered,
    take: (name: string, signal?: AbortSignal): Promise<void> => {
      const [key, server = ''] = name.split('.');
      return slots.with({ server, key: key === '' ? undefined : key }, signal, () => {
        entered.push(name);
        return new Promise((resolve) => ends.set(name, resolve));
      });
    },
    end: async (name: string) => (ends.get(name)?.(), await settled()),
    settled,
  };
}

describe('slots', () => {
  it('one server that does not answer leaves half of them to others', async () => {
    const { take, entered, end, settled } = held(4);
    for (const name of ['a.slow', 'b.slow', 'c.slow', 'd.fine']) void take(name);
    await settled();
    expect(entered).toEqual(['a.slow', 'b.slow', 'd.fine']);
    await end('a.slow');
    expect(entered.at(-1)).toBe('c.slow');
  });

  it('one key leaves a quarter of what one server may have to others', async () => {
    const { take, entered, end, settled } = held(8);
    for (const name of ['evil.hub', 'evil.hub', 'evil.hub', 'evil.hub', 'good.hub', '.hub']) void take(name);
    await settled();
    expect(entered).toEqual(['evil.hub', 'evil.hub', 'evil.hub', 'good.hub']);
    await end('good.hub');
    expect(entered.at(-1)).toBe('.hub');
  });

  it('one key leaves half of them to others, at as many servers as it likes', async () => {
    const { take, entered, end, settled } = held(4);
    for (const name of ['evil.1', 'evil.2', 'evil.3', 'good.4', '.5']) void take(name);
    await settled();
    expect(entered).toEqual(['evil.1', 'evil.2', 'good.4', '.5']);
    await end('good.4');
    expect(entered).toHaveLength(4);
    await end('evil.1');
    expect(entered.at(-1)).toBe('evil.3');
  });

  it('one that is free goes to the key with the fewest, and among those to who has waited longest', async () => {
    const { take, entered, end, settled } = held(2);
    for (const name of ['evil.1', 'bad.2', 'evil.3', 'bad.4', 'late.5', 'later.6']) void take(name);
    await settled();
    expect(entered).toEqual(['evil.1', 'bad.2']);
    await end('evil.1');
    expect(entered.at(-1)).toBe('evil.3');
    await end('bad.2');
    expect(entered.at(-1)).toBe('bad.4');
    await end('bad.4');
    expect(entered.at(-1)).toBe('late.5');
  });

  it('no more wait than may, and who gives up waits no longer', async () => {
    const { take, entered, end, settled } = held(1, 1);
    void take('a.1');
    const impatient = new AbortController();
    const waiting = take('b.2', impatient.signal);
    await expect(take('c.3')).rejects.toThrow('too many repositories wait to be fetched');
    impatient.abort(new Error('gone'));
    await expect(waiting).rejects.toThrow('gone');
    void take('d.4');
    await end('a.1');
    await settled();
    expect(entered).toEqual(['a.1', 'd.4']);
  });
});
