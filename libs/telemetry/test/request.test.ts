import { describe, expect, it } from 'vitest';
import { createLogger } from '../src/index.ts';
import { currentRequest, keptRequest, requestIdOf, requestOf, traceparentOf, withRequest } from '../src/request.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331';

describe('the id of a request', () => {
  it('is kept where it is one word of at most 128 characters', () => {
    for (const id of ['a', '7f3c2d1e-aaaa-4bbb-8ccc-0123456789ab', 'Root=1-67891233-abcdef', 'x'.repeat(128)])
      expect(requestIdOf(id)).toBe(id);
    for (const id of ['', 'a b', 'a, b', 'a\nb', 'é', '"', 'x'.repeat(129), ['a'], undefined, 7])
      expect(requestIdOf(id), String(id)).toBeUndefined();
  });

  it('is made where there is none', () => {
    const [first, second] = [requestOf(undefined, undefined), requestOf('not one', undefined)];
    expect(requestIdOf(first.id)).toBe(first.id);
    expect(second.id).not.toBe(first.id);
    expect(second.id).not.toContain('not');
    expect(keptRequest({})).toBeUndefined();
    expect(keptRequest({ requestId: 'a', traceparent: 'none' })).toEqual({ id: 'a' });
  });

  it('stands in the lines of what is done for it, and in no others', async () => {
    const lines: string[] = [];
    const logger = createLogger({
      service: 'test',
      format: 'json',
      destination: { write: (line) => void lines.push(line) },
    });
    await withRequest({ id: 'r-1' }, async () => {
      await Promise.resolve();
      logger.info('inside');
      withRequest(undefined, () => logger.info('for several'));
    });
    logger.info({ requestId: 'r-2' }, 'by name');
    expect(currentRequest()).toBeUndefined();
    expect(lines.map((line) => (JSON.parse(line) as { requestId?: string }).requestId)).toEqual([
      'r-1',
      undefined,
      'r-2',
    ]);
  });
});

describe('a traceparent', () => {
  it('is taken up as it is, and of a later version what this one knows of it', () => {
    expect(traceparentOf(`00-${TRACE}-01`)).toBe(`00-${TRACE}-01`);
    expect(traceparentOf(`cc-${TRACE}-01-more`)).toBe(`00-${TRACE}-01`);
  });

  it('is left out where it is none', () => {
    for (const text of [
      '',
      `00-${TRACE}`,
      `ff-${TRACE}-01`,
      `00-${TRACE}-01-more`,
      `00-${TRACE.toUpperCase()}-01`,
      `00-${'0'.repeat(32)}-b7ad6b7169203331-01`,
      `00-0af7651916cd43dd8448eb211c80319c-${'0'.repeat(16)}-01`,
      `cc-${TRACE}-01-${'x'.repeat(300)}`,
      undefined,
    ])
      expect(traceparentOf(text), text).toBeUndefined();
  });
});
