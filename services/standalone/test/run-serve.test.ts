/** What `penstock serve` refuses before anything of it starts. */
import { afterEach, expect, it, vi } from 'vitest';
import { runServe } from '../src/run-serve.ts';

afterEach(() => void vi.restoreAllMocks());

it('copies of what the broker keeps, with a broker of its own that keeps one, are refused by the name of their variable', async () => {
  const said: string[] = [];
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => said.push(String(text)) > 0);
  const status = await runServe([], { SERVICE_NATS_REPLICAS: '3', SERVICE_DATA_DIR: '/dev/null/nothing' });
  expect([status, said.join('')]).toEqual([2, expect.stringContaining("SERVICE_NATS_REPLICAS is '3'")]);
});
