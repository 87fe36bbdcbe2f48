import { describe, expect, it } from 'vitest';
import { clientKeyOf } from '../src/index.ts';
import { TrustedProxies } from '../src/client-address.ts';

describe('whose request it is', () => {
  const proxies = new TrustedProxies(['10.0.0.0/8', '192.0.2.1', 'fd00::/8', '::1']);

  it.each([
    ['a peer without the header is the client', '203.0.113.9', undefined, '203.0.113.9'],
    ['a peer that nobody trusts is the client, whatever it says', '203.0.113.9', '198.51.100.1', '203.0.113.9'],
    ['behind a trusted proxy it is the rightmost address', '10.1.2.3', '198.51.100.1, 198.51.100.2', '198.51.100.2'],
    [
      'trusted addresses in the header are passed over',
      '10.1.2.3',
      '198.51.100.1, 198.51.100.2,10.9.9.9 , 192.0.2.1',
      '198.51.100.2',
    ],
    ['where all are trusted it is the leftmost', '10.1.2.3', '10.0.0.7, 10.0.0.8', '10.0.0.7'],
    ['a single trusted address is no range', '192.0.2.2', '198.51.100.1', '192.0.2.2'],
    ['IPv6 peers and ranges', '::1', '2001:db8::5, fd12::1', '2001:db8::5'],
    ['an IPv4 address inside an IPv6 one is that address', '::ffff:10.1.2.3', '::ffff:198.51.100.2', '198.51.100.2'],
    ['the same in hexadecimal', '::ffff:0a01:0203', '198.51.100.2', '198.51.100.2'],
    ['ports and brackets do not count', '10.1.2.3', '[2001:db8::5]:443', '2001:db8::5'],
    ['ports of IPv4 do not count', '10.1.2.3', '198.51.100.2:4711', '198.51.100.2'],
    ['what is no address stops at the proxy that wrote it', '10.1.2.3', '198.51.100.1, unknown', '10.1.2.3'],
    ['what is no address, further left', '10.1.2.3', '198.51.100.1, _hidden, 10.0.0.9', '10.0.0.9'],
    ['an empty header says nothing', '10.1.2.3', '', '10.1.2.3'],
    ['a header that ends with a comma says nothing', '10.1.2.3', '198.51.100.1,', '10.1.2.3'],
    ['a zone is no part of an address', 'fe80::1%eth0', undefined, 'fe80::1'],
    ['a socket that is gone has no address', '', '198.51.100.1', ''],
  ])('%s is how it is read', (_rule, peer, header, client) => {
    expect(proxies.clientOf(peer, header)).toBe(client);
  });

  it('without trusted proxies nobody is believed, loopback neither', () => {
    expect(new TrustedProxies().clientOf('127.0.0.1', '198.51.100.1')).toBe('127.0.0.1');
  });

  it.each(['proxy', '10.0.0.0/33', '10.0.0.0/8/8', '10.0.0/8', 'fd00::/129', '10.0.0.0/', '10.0.0.0/-1', '*', ''])(
    'what is no address and no range is refused by name: %j',
    (entry) => {
      expect(() => new TrustedProxies(['10.0.0.1', entry])).toThrow(RangeError);
      expect(() => new TrustedProxies([entry])).toThrow(`'${entry}'`);
    },
  );
});

describe('what counts as one client', () => {
  it('an IPv4 address counts as a whole', () => {
    expect(clientKeyOf('203.0.113.9')).toBe('203.0.113.9');
  });

  it('of IPv6 the /64, however it is written', () => {
    const key = clientKeyOf('2001:db8:1:2::1');
    for (const address of ['2001:db8:1:2:ffff:ffff:ffff:ffff', '2001:0DB8:0001:0002::', '2001:db8:1:2:0:0:192.0.2.1'])
      expect(clientKeyOf(address)).toBe(key);
    for (const address of ['2001:db8:1:3::1', '2001:db8::1:2:0:1', '::1']) expect(clientKeyOf(address)).not.toBe(key);
  });
});
