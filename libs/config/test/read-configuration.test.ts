import { describe, expect, it } from 'vitest';
import { ConfigurationError, readConfiguration, unknownVariables, type VariableKey } from '../src/index.ts';
import { variables } from '../src/variables.ts';
import { DEMAND_QUERY } from '../src/variables/scaler.ts';

const everything = Object.keys(variables) as VariableKey[];

describe('configuration', () => {
  it('an empty environment gives the documented defaults', () => {
    expect(readConfiguration(everything, { env: {} })).toEqual({
      listen: { host: '127.0.0.1', port: 8080 },
      mode: undefined,
      dataDir: undefined,
      corsOrigins: [],
      playground: false,
      apiKey: undefined,
      jwtSecret: undefined,
      internalListen: { host: '127.0.0.1', port: 9090 },
      scalerQuery: DEMAND_QUERY,
      scalerTarget: 'penstock/statefulset/runner',
      scalerSlots: 8,
      scalerMin: 0,
      scalerMax: 4,
      scalerCooldown: 300_000,
      runnerId: undefined,
      baseUrl: undefined,
      publicRead: undefined,
      triggerWaitSecs: 15,
      natsUrl: undefined,
      natsServer: undefined,
      natsSync: 'default',
      natsReplicas: undefined,
      storeUrl: undefined,
      partitions: undefined,
      runnerLeaseSecs: 15,
      queueTimeout: 86_400_000,
      artifactExpire: 2_592_000_000,
      retention: 7_776_000_000,
      retentionRuns: 20,
      logRetention: 7_776_000_000,
      auditRetention: 34_560_000_000,
      stageDeny: [],
      stageEnv: [],
      stageMemoryBytes: undefined,
      stageProcesses: undefined,
      stageDiskBytes: undefined,
      stagePaths: [],
      stageUids: { first: 200_000, last: 265_535 },
      allowUnisolated: false,
      k8sNetworkPolicies: false,
      k8sSetupTimeout: 300_000,
      drain: 600_000,
      slots: undefined,
      runnerLabels: [],
      logBytesMax: 16_777_216,
      logLevel: 'info',
      dashboardUrl: undefined,
      gitHostProvider: undefined,
      gitHostBaseUrl: undefined,
      gitHostApiUrl: undefined,
      gitHostIssuer: undefined,
      gitHostClientId: undefined,
      gitHostClientSecret: undefined,
      admins: [],
      defaultTier: 'free',
      tiersFile: undefined,
      tenantTier: undefined,
      introspection: true,
      streamsPerUser: 100,
      trustProxy: [],
      rateLimitRead: 240,
      rateLimitApi: 240,
      rateLimitWebhook: 600,
      webhookSecret: undefined,
      webhookToken: undefined,
      webhookRequireSecret: false,
      webhookWaitSecs: 8,
      forkPolicy: 'approve',
      webhookPipeline: undefined,
      webhookRepositories: undefined,
      gitAllowedHosts: ['github.com', 'gitlab.com'],
      gitCredentialsFile: undefined,
      gitCacheBytesMax: 4_294_967_296,
      gitHostAToken: undefined,
      gitHostBToken: undefined,
      extensionPolicy: 'any',
      objectsUrl: undefined,
    });
  });

  it('takes names of variables for stages, never values, and none of its own', () => {
    const read = (text: string) => readConfiguration(['stageEnv'], { env: { SERVICE_STAGE_ENV: text } }).stageEnv;
    expect(read('HTTPS_PROXY, no_proxy,,HTTPS_PROXY')).toEqual(['HTTPS_PROXY', 'no_proxy']);
    const { message } = problemsOf(() => read('A,HTTPS_PROXY=http://me:hunter2@proxy'));
    expect(message).toContain('names of variables, without values');
    expect(message).not.toContain('hunter2');
    const own = ['SERVICE_API_KEY', 'JWT_SECRET', 'JWT_SECRET_FILE', 'GIT_HOST_CLIENT_SECRET', 'PATH', 'HOME'];
    for (const name of [...own, 'two words', '1A', 'A'.repeat(257)])
      expect(() => read(`A,${name}`), name).toThrow('names of variables');
    expect(() => read(Array.from({ length: 101 }, (_, index) => `V${index}`).join(','))).toThrow('up to 100');
  });

  it('reads every kind', () => {
    const secrets = { SERVICE_API_KEY: 'k'.repeat(16), JWT_SECRET: 'j'.repeat(32) };
    const read = (env: Record<string, string>) => readConfiguration(everything, { env: { ...secrets, ...env } });
    expect(read({ SERVICE_LISTEN: '[::1]:0' }).listen).toEqual({ host: '::1', port: 0 });
    expect(read({ SERVICE_LISTEN: 'localhost:65535' }).listen).toEqual({ host: 'localhost', port: 65_535 });
    expect(read({ SERVICE_LISTEN: '9090' }).listen).toEqual({ host: '127.0.0.1', port: 9090 });
    expect(
      read({ SERVICE_LISTEN: ':9090', SERVICE_API_KEY: 'k'.repeat(16), JWT_SECRET: 'j'.repeat(32) }).listen,
    ).toEqual({ host: '0.0.0.0', port: 9090 });
    expect(read({ SERVICE_CORS_ORIGINS: ' https://a.example , http://localhost:3000/,, ' }).corsOrigins).toEqual([
      'https://a.example',
      'http://localhost:3000',
    ]);
    expect(read({ SERVICE_TRUST_PROXY: '10.0.0.0/8, ::1,192.0.2.7,fd00::/8' }).trustProxy).toEqual([
      '10.0.0.0/8',
      '::1',
      '192.0.2.7',
      'fd00::/8',
    ]);
    for (const entry of ['proxy', '10.0.0.0/33', '10.0.0.0/', 'fd00::/129', '10.0.0/8', '10.0.0.0/8/8'])
      expect(() => read({ SERVICE_TRUST_PROXY: `10.0.0.1,${entry}` })).toThrow(`'${entry}'`);
    expect(read({ SERVICE_QUEUE_TIMEOUT: '1h30m' }).queueTimeout).toBe(5_400_000);
    expect(read({ SERVICE_QUEUE_TIMEOUT: '90' }).queueTimeout).toBe(90_000);
    expect(read({ SERVICE_PUBLIC_READ: 'No' }).publicRead).toBe(false);
    expect(read({ SERVICE_PARTITIONS: '16' }).partitions).toBe(16);
    expect(read({ SERVICE_STORE_URL: 'sqlite:data/store.db' }).storeUrl).toEqual({
      kind: 'sqlite',
      path: 'data/store.db',
    });
    expect(read({ SERVICE_STORE_URL: 'sqlite:///var/lib/store.db' }).storeUrl).toEqual({
      kind: 'sqlite',
      path: '/var/lib/store.db',
    });
    expect(read({ SERVICE_STORE_URL: 'mongodb+srv://u:p@h/db' }).storeUrl).toEqual({
      kind: 'mongodb',
      url: 'mongodb+srv://u:p@h/db',
    });
    expect(read({ SERVICE_NATS_URL: 'nats://a:4222, tls://b:4222' }).natsUrl).toEqual([
      'nats://a:4222',
      'tls://b:4222',
    ]);
    expect(read({ SERVICE_BASE_URL: 'https://ci.example/' }).baseUrl).toBe('https://ci.example');
    expect(read({ SERVICE_RUNNER_LABELS: 'linux,gpu:a100' }).runnerLabels).toEqual(['linux', 'gpu:a100']);
  });

  it('refuses a short one among several of JWT_SECRET', () => {
    const env = { SERVICE_MODE: 'production', JWT_SECRET: `${'n'.repeat(32)},short` };
    expect(problemsOf(() => readConfiguration(['listen', 'mode', 'jwtSecret'], { env })).problems).toEqual([
      'JWT_SECRET is shorter than 32 bytes, or one of those that its commas part is; make one with: openssl rand -hex 32',
    ]);
  });

  it('refuses a short JWT_SECRET in production mode, and only there', () => {
    const env = { SERVICE_MODE: 'production', JWT_SECRET: 'short' };
    expect(problemsOf(() => readConfiguration(['listen', 'mode', 'jwtSecret'], { env })).problems).toEqual([
      'JWT_SECRET is shorter than 32 bytes; make one with: openssl rand -hex 32',
    ]);
    expect(readConfiguration(['listen', 'mode', 'jwtSecret'], { env: { JWT_SECRET: 'short' } }).jwtSecret).toBe(
      'short',
    );
  });

  it('a variable set to nothing counts as not set', () => {
    expect(readConfiguration(['logLevel', 'slots'], { env: { SERVICE_LOG_LEVEL: '', SERVICE_SLOTS: '  ' } })).toEqual({
      logLevel: 'info',
      slots: undefined,
    });
  });

  it('a flag stands above its variable', () => {
    const flags = { listen: { name: '--listen', value: '127.0.0.1:1' } };
    expect(readConfiguration(['listen'], { env: { SERVICE_LISTEN: '127.0.0.1:2' }, flags }).listen.port).toBe(1);
    expect(() =>
      readConfiguration(['listen'], { env: {}, flags: { listen: { name: '--listen', value: '' } } }),
    ).toThrow('--listen needs a value (host:port)');
  });

  it('names every problem in one message, each with its variable and what would be right', () => {
    const env = {
      SERVICE_LISTEN: 'http://localhost:8080',
      SERVICE_RUNNER_LEASE_SECS: '5',
      SERVICE_QUEUE_TIMEOUT: 'soon',
      SERVICE_PARTITIONS: '12',
      SERVICE_SLOTS: '1.5',
      SERVICE_LOG_LEVEL: 'loud',
      SERVICE_CORS_ORIGINS: 'https://a.example/path',
      SERVICE_PUBLIC_READ: 'maybe',
      SERVICE_BASE_URL: 'ci.example',
      SERVICE_TRIGGER_WAIT_SECS: '301',
      SERVICE_MODE: 'test',
    };
    const error = problemsOf(() => readConfiguration(everything, { env }));
    expect(error.problems).toEqual([
      "SERVICE_LISTEN is 'http://localhost:8080'; it is to be an address such as 127.0.0.1:8080 or [::1]:8080, without a scheme",
      "SERVICE_MODE is 'test'; it is to be one of development, production",
      "SERVICE_CORS_ORIGINS is 'https://a.example/path'; it has the item 'https://a.example/path', which is to be an origin, that is https://a.example",
      "SERVICE_BASE_URL is 'ci.example'; it is to be a URL that begins with http:// or https://",
      "SERVICE_PUBLIC_READ is 'maybe'; it is to be true or false",
      "SERVICE_TRIGGER_WAIT_SECS is '301'; it is to be a whole number from 0 to 300",
      "SERVICE_PARTITIONS is '12'; it is to be a power of two, 1 to 256",
      "SERVICE_RUNNER_LEASE_SECS is '5'; it is to be a whole number from 6 to 600",
      "SERVICE_QUEUE_TIMEOUT is 'soon'; it is to be a duration such as 90s, 10m or 24h",
      "SERVICE_SLOTS is '1.5'; it is to be a whole number from 1 to 1000",
      "SERVICE_LOG_LEVEL is 'loud'; it is to be one of trace, debug, info, warn, error, fatal, silent",
    ]);
    expect(error.message).toMatch(/^the configuration has 11 problems:\n {2}- SERVICE_LISTEN is/);
  });

  it('a missing API key in production mode is a problem that names it, beside the others', () => {
    const error = problemsOf(() =>
      readConfiguration(['listen', 'mode', 'apiKey', 'slots'], {
        env: { SERVICE_LISTEN: '0.0.0.0:80', SERVICE_SLOTS: '0' },
      }),
    );
    expect(error.problems).toEqual([
      expect.stringContaining('SERVICE_SLOTS'),
      'SERVICE_API_KEY is missing, and production mode (it listens on 0.0.0.0) needs it; make one with: openssl rand -hex 32',
    ]);
    expect(readConfiguration(['listen', 'mode', 'apiKey'], { env: {} }).apiKey).toBeUndefined();
    expect(() => readConfiguration(['listen', 'mode', 'apiKey'], { env: { SERVICE_MODE: 'production' } })).toThrow(
      'SERVICE_API_KEY is missing',
    );
  });

  it('refuses development mode on an address that others can reach', () => {
    expect(() =>
      readConfiguration(['listen', 'mode'], { env: { SERVICE_LISTEN: '0.0.0.0:80', SERVICE_MODE: 'development' } }),
    ).toThrow('others can reach the server because it listens on 0.0.0.0; leave it out');
  });

  it('never shows a secret, however wrong it is', () => {
    const env = {
      SERVICE_API_KEY: 'canary with blanks',
      SERVICE_NATS_URL: 'nats://a, http://user:canary@host',
      SERVICE_STORE_URL: 'postgres://user:canary@host',
    };
    const error = problemsOf(() => readConfiguration(everything, { env }));
    expect(error.problems).toHaveLength(3);
    expect(error.message).not.toContain('canary');
  });

  it('notices variables that look like ours and are not, with what was probably meant', () => {
    expect(
      unknownVariables({
        SERVICE_PARTITION: '4',
        SERVICE_LISTEN: ':1',
        SERVICE_COLOUR_OF_THE_SKY: 'blue',
        SERVICE_BROKER_GO: 'off',
        SERVICE_TEST_MONGODB_URL: 'x',
        SERVICE_URL: 'https://ci.example.org',
        PATH: '',
      }),
    ).toEqual([
      { name: 'SERVICE_COLOUR_OF_THE_SKY', suggestion: null },
      { name: 'SERVICE_PARTITION', suggestion: 'SERVICE_PARTITIONS' },
    ]);
  });
});

function problemsOf(work: () => unknown): ConfigurationError {
  try {
    work();
  } catch (error) {
    if (error instanceof ConfigurationError) return error;
  }
  throw new Error('no ConfigurationError was thrown');
}
