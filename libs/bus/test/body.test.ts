import { describe, expect, it } from 'vitest';
import { decodeBody, encodeBody } from '../src/wire/body.ts';

function roundTrip(body: unknown): unknown {
  const encoded = encodeBody(body);
  return decodeBody(typeof encoded === 'string' ? Buffer.from(encoded) : encoded);
}

describe('the body of a message', () => {
  it.each([
    null,
    0,
    'text',
    [1],
    { data: 'text' },
    { data: null },
    { value: null },
    { value: { data: 'x' } },
    { ok: true },
  ])('is JSON where there are no bytes: %j', (body) => {
    expect(typeof encodeBody(body)).toBe('string');
    expect(roundTrip(body)).toEqual(body);
  });

  it.each([0, 1, 700_000])('carries %d bytes as they are beside the rest', (length) => {
    const data = Buffer.alloc(length, Uint8Array.from([0, 255, 123]));
    const request = { offset: 7, data, of: { name: 'ä' } };
    expect(roundTrip(request)).toEqual(request);
    const answer = { ok: true, value: { data, sizeBytes: 9 } };
    expect(roundTrip(answer)).toEqual(answer);
    expect((encodeBody(request) as Uint8Array).length).toBeLessThan(length + 100);
    expect(request.data).toBe(data);
  });

  it('cut off or without a place for its bytes is refused', () => {
    const whole = encodeBody({ data: Buffer.from('x') }) as Uint8Array;
    expect(() => decodeBody(whole.subarray(0, 3))).toThrow(SyntaxError);
    expect(() => decodeBody(whole.subarray(0, 8))).toThrow(SyntaxError);
    const placeless = Buffer.concat([Buffer.from([0, 1, 0, 0, 0, 2]), Buffer.from('{}x')]);
    expect(() => decodeBody(placeless)).toThrow('no place');
    expect(() => decodeBody(Buffer.from([0, 0, 0xff, 0xff, 0xff, 0xff]))).toThrow(SyntaxError);
  });
});
