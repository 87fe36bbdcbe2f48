/** Everything of a tenant deleted on a started product, through the public API: what goes, what is counted, and what of others stays. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { githubPush, githubSignature, makeRepository, type TestRepository } from '@penstock/webhook-ingest/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { deviceLogin, type Login } from './device-login.ts';
import { temporaryFolder } from './server.ts';

/** Where it is looked at. */
export interface PurgeProduct {
  readonly url: string;
  readonly apiKey: string;
  stop(): Promise<unknown>;
}

const SERVER_SECRET = 'the secret of provider A';
const COUNTS =
  'runs cancelledRuns repositories grantsGiven schedules hooks secrets tokens caches deliveries extensions extensionKeys';
const PURGE = `mutation ($tenant: String, $cancel: Boolean) {
  adminPurge(tenant: $tenant, cancel: $cancel) { tenant isDone waitsFor ${COUNTS} } }`;
const EVERYTHING = `{ runs { id } secrets { name } repositories { id } schedules { id } hooks { id } caches { id }
  webhookDeliveries { id } extensionKeys { id } }`;
const NOTHING = {
  ...{ runs: [], secrets: [], repositories: [], schedules: [], hooks: [], caches: [] },
  ...{ webhookDeliveries: [], extensionKeys: [] },
};

interface Answer {
  readonly data: Record<string, never> | null;
  readonly errors?: readonly { readonly message: string; readonly extensions: { readonly code: string } }[];
}
type Receipt = Readonly<Record<string, unknown>>;
const NONE = Object.fromEntries(COUNTS.split(' ').map((field) => [field, 0]));

const codesOf = (answer: Answer): readonly string[] => (answer.errors ?? []).map(({ extensions }) => extensions.code);

/** `start` is given the variables that the product is to have, of whichever process. */
export function describePurge(where: string, start: (env: Record<string, string>) => Promise<PurgeProduct>): void {
  const folder = temporaryFolder('penstock-purge-');
  let product: PurgeProduct;
  let repository: TestRepository;
  let commit: string;
  let admin: Login;

  beforeAll(async () => {
    repository = makeRepository();
    const file = "pipeline: {name: pushed}\nschedule: '0 5 1 1 *'\nstages: {a: {run: 'true'}}\n";
    commit = repository.commit({ '.pipeline.yaml': file });
    repository.git('branch', 'trunk');
    const tiers = join(folder.path, 'tiers.json');
    writeFileSync(tiers, JSON.stringify({ free: { canPublishExtensions: true } }));
    product = await start({
      SERVICE_ADMINS: 'sub:root',
      SERVICE_TIERS_FILE: tiers,
      SERVICE_PUBLIC_READ: 'false',
      SERVICE_WEBHOOK_SECRET: SERVER_SECRET,
      SERVICE_WEBHOOK_REPOSITORIES: '*/*',
      SERVICE_WEBHOOK_WAIT_SECS: '60',
    });
    admin = await deviceLogin(product.url, 'root');
  }, 180_000);
  afterAll(async () => {
    await product.stop();
    repository.remove();
    folder.remove();
  });

  async function graphql(token: string, query: string, variables: object = {}): Promise<Answer> {
    const response = await fetch(`${product.url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: JSON.stringify({ query, variables }),
    });
    return (await response.json()) as Answer;
  }

  async function everything(token: string): Promise<Receipt> {
    const { data, errors } = await graphql(token, EVERYTHING);
    expect(errors).toBeUndefined();
    return data ?? {};
  }

  async function trigger(token: string, stage: string, waitSeconds: number): Promise<string> {
    const yaml = `pipeline: {name: p}\nstages: {a: ${stage}}\n`;
    const query =
      'mutation ($yaml: String, $wait: Int) { triggerPipeline(yaml: $yaml, waitSeconds: $wait) { run { id } } }';
    const answer = await graphql(token, query, { yaml, wait: waitSeconds });
    expect(answer.errors).toBeUndefined();
    return String(answer.data?.['triggerPipeline']?.['run']?.['id']);
  }

  /** Answers what the sender of a push is told. */
  async function push(secret: string, deliveryId: string): Promise<Receipt> {
    const body = JSON.stringify(
      githubPush({ repository: 'acme/app', ref: 'refs/heads/trunk', url: repository.url, commit }),
    );
    const response = await fetch(`${product.url}/webhook`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-github-event': 'push',
        'x-github-delivery': deliveryId,
        'x-hub-signature-256': githubSignature(body, secret),
      },
      body,
    });
    return (await response.json()) as Receipt;
  }

  /** Of each kind something; answers the secret of the connected repository. */
  async function furnish(token: string): Promise<string> {
    const made = await graphql(
      token,
      `mutation {
        setSecret(name: "KEY", value: "hidden-0815") { name }
        connectRepository(provider: "git_host_a", repository: "acme/app") { secret }
        grantAccess(repository: "acme/app", login: "guest", role: "read") { login }
        createApiToken(name: "ci", scopes: ["read"]) { token }
        createHook(url: "https://example.com/hook", events: ["run.completed"]) { id }
        registerExtensionKey(publicKey: "${Buffer.alloc(32, 7).toString('base64')}") { id } }`,
    );
    expect(made.errors).toBeUndefined();
    const secret = String(made.data?.['connectRepository']?.['secret']);
    await trigger(token, "{run: 'echo kept > f', cache: {key: k, paths: f}, artifacts: {paths: f}}", 60);
    expect(await push(secret, `first of ${token.slice(-20)}`)).toMatchObject({ accepted: true, status: 'Success' });
    const whole = { caches: 1, schedules: 1, webhookDeliveries: 1, runs: 2 };
    for (const [field, length] of Object.entries(whole))
      await expect.poll(async () => (await everything(token))[field], { timeout: 20_000 }).toHaveLength(length);
    return secret;
  }

  async function purged(tenant: string, cancel = false): Promise<Receipt> {
    const answer = await graphql(admin.access_token, PURGE, { tenant, cancel });
    expect(answer.errors).toBeUndefined();
    return (answer.data?.['adminPurge'] ?? {}) as Receipt;
  }

  describe(`adminPurge ${where}`, { timeout: 120_000 }, () => {
    it('deletes everything of a user, counts it, and touches nothing of anybody else; again it finds nothing', async () => {
      const [ada, bob] = [await deviceLogin(product.url, 'ada'), await deviceLogin(product.url, 'bob')];
      const adaSecret = await furnish(ada.access_token);
      await furnish(bob.access_token);
      const before = await everything(bob.access_token);
      const tenant = `user/${ada.user.id}`;

      expect(codesOf(await graphql(bob.access_token, PURGE, { tenant }))).toEqual(['FORBIDDEN']);
      for (const strange of ['', 'user/', 'ada', 'user'])
        expect(codesOf(await graphql(admin.access_token, PURGE, { tenant: strange }))).toEqual(['BAD_USER_INPUT']);

      const live = await trigger(ada.access_token, "{run: 'sleep 100'}", 0);
      const refused = await graphql(admin.access_token, PURGE, { tenant });
      expect(codesOf(refused)).toEqual(['CONFLICT']);
      expect(refused.errors?.[0]?.message).toContain(live);
      expect((await everything(ada.access_token))['secrets']).toHaveLength(1);

      const counts = { ...NONE };
      for (let isDone = false; !isDone;) {
        const receipt = await purged(tenant, true);
        for (const field of COUNTS.split(' ')) counts[field] = (counts[field] ?? 0) + Number(receipt[field]);
        isDone = receipt['isDone'] === true;
        expect(receipt['waitsFor'] === null).toBe(isDone);
      }
      expect(counts).toEqual({
        ...{ runs: 3, cancelledRuns: 1, repositories: 1, grantsGiven: 1, schedules: 1, hooks: 1, secrets: 1 },
        ...{ tokens: 1, caches: 1, deliveries: 1, extensions: 0, extensionKeys: 1 },
      });
      expect(await everything(ada.access_token)).toEqual(NOTHING);
      expect((await fetch(`${product.url}/pipeline/${live}/logs?token=${ada.access_token}`)).status).toBe(404);
      expect(await push(adaSecret, 'after it')).not.toMatchObject({ accepted: true });
      expect(await everything(bob.access_token)).toEqual(before);

      expect(await purged(tenant)).toEqual({ tenant, isDone: true, waitsFor: null, ...NONE });
      const { data } = await graphql(admin.access_token, '{ auditLog(limit: 100) { action target } }');
      expect(data?.['auditLog']).toContainEqual({ action: 'admin.purge', target: tenant });
    });

    it('deletes what the API key and unconnected repositories have; a delivery of before makes no run again', async () => {
      expect((await push(SERVER_SECRET, 'of the service'))['status']).toBe('Success');
      const schedules = async (): Promise<unknown> =>
        (await graphql(product.apiKey, '{ schedules { id } }')).data?.['schedules'];
      await expect.poll(schedules, { timeout: 20_000 }).toHaveLength(1);
      const keys = (await graphql(product.apiKey, '{ extensionKeys { id } }')).data;
      const receipt = await purged('service');
      expect(receipt).toMatchObject({ isDone: true, runs: 1, deliveries: 1, schedules: 1, repositories: 0 });
      expect(await push(SERVER_SECRET, 'of the service')).toMatchObject({ run_id: null, status: 'Ignored' });
      const { data } = await graphql(product.apiKey, '{ runs { id } schedules { id } webhookDeliveries { id } }');
      expect((await graphql(product.apiKey, '{ extensionKeys { id } }')).data).toEqual(keys);
      expect(keys?.['extensionKeys']).toHaveLength(1);
      expect(data).toEqual({ runs: [], schedules: [], webhookDeliveries: [] });
    });
  });
}
