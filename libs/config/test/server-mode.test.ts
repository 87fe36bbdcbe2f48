import { describe, expect, it } from 'vitest';
import { isLoopback, serverMode } from '../src/index.ts';

const at = (host: string) => ({ host, port: 8080 });

describe('server mode', () => {
  it('is development where only this machine reaches the server and SERVICE_MODE is unset', () => {
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

  it('is production on a loopback address that a public base URL or a proxy leads to', () => {
    const listen = at('127.0.0.1');
    expect(serverMode({ listen, baseUrl: 'https://ci.example' })).toBe('production');
    expect(serverMode({ listen, baseUrl: 'http://localhost.evil.example:8080' })).toBe('production');
    expect(serverMode({ listen, trustProxy: ['127.0.0.1'] })).toBe('production');
    expect(serverMode({ listen, baseUrl: 'http://localhost:8080/ci' })).toBe('development');
    expect(serverMode({ listen, baseUrl: 'http://[::1]:8080' })).toBe('development');
  });

  it('takes development mode by its name behind a proxy of this machine, and behind no other', () => {
    const asked = { listen: at('127.0.0.1'), mode: 'development' } as const;
    expect(serverMode({ ...asked, trustProxy: ['127.0.0.1', '::1'] })).toBe('development');
    expect(serverMode({ ...asked, trustProxy: ['127.0.0.1', '10.0.0.0/8'] })).toBeNull();
    expect(serverMode({ ...asked, baseUrl: 'https://ci.example' })).toBeNull();
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
