import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { expect, it } from 'vitest';
import { systemReason } from '../src/index.ts';

it('says why the system refused a file in words, and what else went wrong as its error says it', async () => {
  const reason = (path: string): Promise<unknown> => readFile(path).catch(systemReason);
  expect(await reason('/nosuch')).toBe('it is not there');
  expect(await reason(tmpdir())).toBe('it is a folder');
  expect(await reason(`${process.execPath}/x`)).toBe('a part of its path is no folder');
  expect(systemReason(new Error('the key is no key'))).toBe('the key is no key');
  expect(systemReason('odd')).toBe('odd');
});
