import { Unavailable } from '@penstock/errors';
import { Metrics } from '@penstock/telemetry/metrics';
import { describe, expect, it } from 'vitest';
import { allFigures } from '../src/api/all-figures.ts';

function counted(bytes: number) {
  const metrics = new Metrics({ process: false });
  metrics.add('penstock_log_bytes_total', {}, bytes);
  return () => metrics.snapshot();
}

describe('the figures of both threads', () => {
  it('are added up', async () => {
    const { body } = await allFigures(counted(2), counted(3), undefined);
    expect(body).toContain('penstock_log_bytes_total 5');
  });

  it('are refused, with the cause, where the engine does not answer in time', async () => {
    const answer = allFigures(() => new Promise(() => {}), counted(3), undefined, 10);
    await expect(answer).rejects.toThrow(Unavailable);
    await expect(answer).rejects.toThrow('The engine has not said what it counts within 0.01 s');
  });
});
