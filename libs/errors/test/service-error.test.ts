import { describe, expect, it } from 'vitest';
import { ERROR_CODES, type ErrorCode, ServiceError, serviceErrorOf, TaggedError, Unavailable } from '../src/index.ts';

const codes = Object.keys(ERROR_CODES) as ErrorCode[];

describe('errors of services', () => {
  it.each(codes.filter((code) => code !== 'INTERNAL_SERVER_ERROR'))(
    'is made again from the code %s that came from another service',
    (code) => {
      const error = serviceErrorOf(code, 'Not so.', { field: 'name' });
      expect(error).toBeInstanceOf(ServiceError);
      expect(error).toMatchObject({ code, message: 'Not so.' });
    },
  );

  it('makes an internal error of another service one that is worth repeating', () => {
    expect(serviceErrorOf('INTERNAL_SERVER_ERROR', 'Broken.')).toBeInstanceOf(Unavailable);
  });

  it('keeps how long to wait when an Unavailable is made again', () => {
    const sent = new Unavailable('Later.', { retryAfterSecs: 17 });
    const received = serviceErrorOf(sent.code, sent.message, sent.extensions);
    expect(received).toMatchObject({ retryAfterSecs: 17, extensions: { retryAfter: 17 } });
  });

  it('gives every refusal a 4xx status, and a 5xx one only to what is no fault of the client', () => {
    const serverSide = codes.filter((code) => ERROR_CODES[code].status >= 500);
    expect(serverSide).toEqual(['UNAVAILABLE', 'INTERNAL_SERVER_ERROR']);
  });

  it('keeps the cause', () => {
    const cause = new Error('the broker is away');
    expect(new Unavailable('Later.', { cause }).cause).toBe(cause);
  });
});

describe('a tagged error', () => {
  class DiskFull extends TaggedError {
    readonly tag = 'DiskFull';
  }

  it('has its tag as its name, so that logs and texts say which kind it is', () => {
    const error = new DiskFull('no room on /data');
    expect(error.name).toBe('DiskFull');
    expect(String(error)).toBe('DiskFull: no room on /data');
  });

  it('is told apart by its tag', () => {
    const thrown: TaggedError = serviceErrorOf('FORBIDDEN', 'No.');
    expect([new DiskFull('x').tag, thrown.tag]).toEqual(['DiskFull', 'Forbidden']);
  });
});
