/** Where a webhook may send to: by the text of its address, by what its name leads to, and by what connects. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { parseHookUrl } from '../src/hooks/address.ts';
import { post } from '../src/hooks/post.ts';
import { machineNames, resolveHost, type Names } from '../src/hooks/resolve.ts';
import { startReceiver } from './receiver.ts';

/** Whoever asks again gets another answer, as of a name that is bound anew. */
function names(...answers: readonly (readonly string[])[]): Names & { asked: number } {
  const all = [...answers];
  const given = { asked: 0, addressesOf: async () => ((given.asked += 1), all.shift() ?? []) };
  return given;
}

describe('the address of a webhook in production mode', () => {
  it.each([
    'https://hooks.example.com/in?key=1',
    'http://hooks.example.com:80/',
    'http://hooks.example.com:443/',
    'https://hooks.example.com./in',
    'https://93.184.215.14/in',
    'https://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]/',
  ])('%s is allowed', (url) => {
    expect(parseHookUrl(url, 'production')).toBeInstanceOf(URL);
  });

  it.each([
    ['', '1 to'],
    ['hooks.example.com', 'no address'],
    ['ftp://hooks.example.com/', 'https:// or http://'],
    ['file:///etc/passwd', 'https:// or http://'],
    ['https://user:pass@hooks.example.com/', 'no user and no password'],
    ['https://hooks.example.com/#part', '#'],
    ['https://hooks.example.com/\n', 'no address'],
    ['https://hooks.example.com\\@evil.example/', 'no address'],
    ['https://hooks.example.com:8080/', 'ports 80 and 443'],
    ['http://hooks.example.com:22/', 'ports 80 and 443'],
    [`https://hooks.example.com/${'a'.repeat(3_000)}`, '1 to'],
    ...[
      'localhost',
      'localhost.',
      'api.localhost',
      'metadata.google.internal',
      'printer.local',
      'gateway',
      '127.0.0.1',
      // The same in the spellings that a URL has for it.
      '2130706433',
      '0x7f000001',
      '0177.0.0.1',
      '127.1',
      '0.0.0.0',
      '10.1.2.3',
      '172.16.0.1',
      '192.168.1.1',
      '100.64.0.1',
      '169.254.169.254',
      '198.18.0.1',
      '224.0.0.1',
      '255.255.255.255',
      '[::1]',
      '[::]',
      '[fe80::1]',
      '[fc00::1]',
      '[fd00:ec2::254]',
      '[ff02::1]',
      '[::ffff:127.0.0.1]',
      '[::ffff:10.0.0.1]',
      '[::ffff:a9fe:a9fe]',
      '[::127.0.0.1]',
      '[64:ff9b::7f00:1]',
      '[2002:7f00:1::]',
      '[2001:db8::1]',
    ].map((host): [string, string] => [`https://${host}/`, 'not a public one']),
  ])('%s is refused: %s', (url, why) => {
    expect(parseHookUrl(url, 'production')).toEqual({ refusal: expect.stringContaining(why) as unknown });
  });
});

describe('a name', () => {
  const PUBLIC = '93.184.215.14';

  it('leads to one address, asked for once', async () => {
    const given = names([PUBLIC, '2606:2800:21f:cb07:6820:80da:af6b:8b2c']);
    expect(await resolveHost('hooks.example.com', 'production', given)).toBe(PUBLIC);
    expect(given.asked).toBe(1);
  });

  it.each([
    ['nowhere', []],
    ['loopback', ['127.0.0.1']],
    ['the link', ['169.254.169.254']],
    ['a private network', ['192.168.7.7']],
    ['a carrier', ['100.100.100.200']],
    ['loopback in IPv6', ['::1']],
    ['loopback mapped into IPv6', ['::ffff:7f00:1']],
    ['somebody public and somebody private', [PUBLIC, '10.0.0.1']],
  ])('that leads to %s is refused', async (_where, addresses) => {
    expect(await resolveHost('hooks.example.com', 'production', names(addresses))).toHaveProperty('refusal');
  });

  it('that changes after it was judged changes nothing: nobody asks again, and the connection goes where was judged', async () => {
    const receiver = await startReceiver();
    const { port } = new URL(receiver.url);
    const rebound = names(['127.0.0.1'], ['127.0.0.2']);
    const posted = await post(`http://changing.example:${port}/`, {}, BODY, { mode: 'development', names: rebound });
    expect(posted).toMatchObject({ outcome: 'taken', status: 204 });
    expect(rebound.asked).toBe(1);
    expect(receiver.received[0]?.headers.host).toBe(`changing.example:${port}`);
    await receiver.close();
  });

  it('of this machine alone is known in development mode', async () => {
    expect(await machineNames().addressesOf('localhost')).not.toEqual([]);
  });
});

const BODY = Buffer.from(JSON.stringify({ data: { run: { id: 'r' } } }));

describe('a request', () => {
  it('of a server in production mode knocks at no door of the machine, whatever the name leads to', async () => {
    const receiver = await startReceiver();
    const { port } = new URL(receiver.url);
    for (const url of [receiver.url, `http://inside.example:${port}/`, 'http://inside.example/'])
      expect(await post(url, {}, BODY, { mode: 'production', names: names(['127.0.0.1']) })).toMatchObject({
        outcome: 'failed',
        status: 0,
      });
    expect(receiver.received).toEqual([]);
    await receiver.close();
  });

  it('to an address at which nobody listens says so without naming it', async () => {
    const { url, close } = await startReceiver();
    await close();
    const posted = await post(url, {}, BODY, { mode: 'development', names: machineNames() });
    expect(posted).toMatchObject({ outcome: 'failed', status: 0, why: 'nobody listens there' });
  });

  it('to somebody who answers what is no HTTP, or has no end, ends', async () => {
    const server = createServer((_request, response) => {
      response.writeHead(200);
      const more = (): void => {
        if (!response.destroyed) response.write('x'.repeat(64 * 1024), () => setImmediate(more));
      };
      more();
    });
    const closed = new Promise<void>((resolve) => {
      server.on('connection', (socket) => socket.once('close', () => resolve()));
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    const { port } = server.address() as AddressInfo;
    const posted = await post(`http://127.0.0.1:${port}/`, {}, BODY, { mode: 'development', names: machineNames() });
    expect(posted.outcome).toBe('taken');
    // By us: the answer goes on for ever.
    await closed;
    server.close();
  }, 60_000);

  it('ends when it is to stop', async () => {
    const receiver = await startReceiver();
    receiver.answer = () => undefined;
    const stopped = new AbortController();
    const posting = post(receiver.url, {}, BODY, { mode: 'development', names: machineNames() }, stopped.signal);
    await expect.poll(() => receiver.received.length, { timeout: 20_000 }).toBe(1);
    stopped.abort();
    expect((await posting).outcome).toBe('failed');
    await receiver.close();
  }, 60_000);
});
