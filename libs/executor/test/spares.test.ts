import { describe, expect, it } from 'vitest';
import { Spares } from '../src/workspace/spares.ts';

const spare = (key: string, path: string) => ({
  key,
  path,
  identity: path,
  hasTemporary: false,
  hasShared: true,
  changed: { run: 1, shared: 1, temporary: 1 },
});
const anywhere = () => true;

describe('spare folders', () => {
  it('serve the key that left them, the last one first, and none that lies elsewhere', () => {
    const spares = new Spares(8);
    spares.keep(spare('a', '/1/x'));
    spares.keep(spare('a', '/1/y'));
    spares.keep(spare('b', '/2/z'));
    expect(spares.take('a', (path) => path.startsWith('/2/'))).toBeUndefined();
    expect([1, 2, 3].map(() => spares.take('a', anywhere)?.path)).toEqual(['/1/y', '/1/x', undefined]);
    expect(spares.take('b', anywhere)?.path).toBe('/2/z');
  });

  it('are no more than their bound, whoever keeps them: those of the key that was used longest ago go first', () => {
    const spares = new Spares(2);
    const gone = [spare('a', '/a'), spare('b', '/b'), spare('a', '/a2'), spare('c', '/c'), spare('d', '/d')].map(
      (each) => spares.keep(each)?.path,
    );
    expect(gone).toEqual([undefined, undefined, '/b', '/a', '/a2']);
    expect(['a', 'b', 'c', 'd'].map((key) => spares.take(key, anywhere)?.path)).toEqual([
      undefined,
      undefined,
      '/c',
      '/d',
    ]);
  });
});
