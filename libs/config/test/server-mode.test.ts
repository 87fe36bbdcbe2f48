import { describe, expect, it } from 'vitest';
import { isLoopback, serverMode } from '../src/index.ts';

const at = (host: string) => ({ host, port: 8080 });

describe('server mode', () => {
  it('is development on a loopback address where SERVICE_MODE is unset', () => {
    for (const host of ['127.0.0.1', '127.3.2.1', 'localhost', '::1', '0:0:0:0:0:0:0:1', '::ffff:127.0.0.1'])
      expect(serverMode({ listen: at(host) })).toBe('development');
  });

  it('is production on any other address', () => {
    for (const host of [
      '0.0.0.0',
      '::',
      '10.0.0.1',
      'ci.example',
      'localhost.evil.example',
      '127.0.0.1.evil.example',
      '',
    ])
      expect(serverMode({ listen: at(host) })).toBe('production');
  });

  it('is production where SERVICE_MODE says so', () => {
    expect(serverMode({ listen: at('127.0.0.1'), mode: 'production' })).toBe('production');
  });

  it('is never development on an address that others can reach', () => {
    expect(serverMode({ listen: at('127.0.0.1'), mode: 'development' })).toBe('development');
    expect(serverMode({ listen: at('0.0.0.0'), mode: 'development' })).toBeNull();
    expect(isLoopback('0.0.0.0')).toBe(false);
  });
});
