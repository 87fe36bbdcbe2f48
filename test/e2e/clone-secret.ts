/**
 * A private repository, read with a secret of the user that has connected it: from a push to the files of its stages, and what is found of
 * the secret anywhere else. Against git's own server behind http basic.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { signAccessToken } from '@penstock/identity';
import { githubPull, githubPush, githubSignature, makeRepository } from '@penstock/webhook-ingest/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startSmartServer, type GitServer } from '../support/git-servers.ts';
import { temporaryFolder } from '../support/server.ts';
import { readStream } from '../support/sse.ts';
import { until } from '../support/wait.ts';

const CANARY = 'kanarie/4711+geel';
const JWT_SECRET = 'a-secret-of-more-than-thirty-two-bytes';
const SERVERS_OWN = 'the-password-of-the-server';
const NAMES = { provider: 'git_host_a', repository: 'acme/private' } as const;
const LONG = { timeout: 120_000 };

/** Whoever asks it for anything is noted by the name, and let in by name and password. */
class PrivateHost {
  readonly asked: string[] = [];
  readonly admitted = new Map<string, string>();
  server: GitServer | undefined;
  readonly repository = makeRepository();
  count = 0;

  async start(): Promise<void> {
    const root = join(this.repository.folder, '..');
    this.server = await startSmartServer(root, (authorization) => {
      const text = Buffer.from(authorization?.replace('Basic ', '') ?? '', 'base64').toString();
      const [user = '', ...password] = text.split(':');
      if (user !== '') this.asked.push(user);
      return user !== '' && this.admitted.get(user) === password.join(':');
    });
  }

  get url(): string {
    return `${this.server?.url ?? ''}/${this.repository.folder.split('/').at(-1) ?? ''}/.git`;
  }

  commit(stages: string, ref = 'main'): string {
    this.repository.git('checkout', '-q', '-B', ref);
    this.count += 1;
    return this.repository.commit({
      '.pipeline.yaml': `pipeline: {name: private}\nstages:\n${stages}`,
      'private.txt': `what is private, for the ${this.count}th time\n`,
    });
  }

  async close(): Promise<void> {
    await this.server?.close();
    this.repository.remove();
  }
}

class User {
  readonly url: string;
  readonly token: string;
  secret = '';
  id = '';

  private constructor(url: string, token: string) {
    this.url = url;
    this.token = token;
  }

  static async of(url: string, number: number): Promise<User> {
    const sub = `01932c07-0000-7000-8000-00000000000${number}`;
    const claims = { sub, sid: `s${number}`, email: `u${number}@example.com`, tier: 'free', admin: false };
    return new User(url, await signAccessToken(JWT_SECRET, { ...claims, at: Date.now() }));
  }

  async ask<T = Record<string, unknown>>(query: string, variables: Record<string, unknown> = {}): Promise<T> {
    const response = await fetch(`${this.url}/graphql`, {
      method: 'POST',
      headers: { authorization: `Bearer ${this.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ query, variables }),
    });
    const { data, errors } = (await response.json()) as { data: T; errors?: unknown };
    if (errors !== undefined) throw new Error(JSON.stringify(errors));
    return data;
  }

  async setSecret(value: string, more: { repository?: string; refs?: string[] } = {}): Promise<void> {
    await this.ask(
      'mutation ($value: String, $repository: String, $refs: [String!]) { setSecret(name: "CLONE_TOKEN", value: $value, repository: $repository, refs: $refs) { name } }',
      { value, ...more },
    );
  }

  async connect(cloneSecret: string | null): Promise<void> {
    const { connectRepository: made } = await this.ask<{ connectRepository: { id: string; secret: string } }>(
      'mutation ($provider: String, $repository: String, $cloneSecret: String) { connectRepository(provider: $provider, repository: $repository, cloneSecret: $cloneSecret) { id secret } }',
      { ...NAMES, cloneSecret },
    );
    Object.assign(this, made);
  }

  async deliver(event: string, payload: unknown): Promise<{ readonly status: string; readonly run_id: string }> {
    const body = JSON.stringify(payload);
    const response = await fetch(`${this.url}/webhook`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-github-event': event,
        'x-hub-signature-256': githubSignature(body, this.secret),
      },
      body,
    });
    return (await response.json()) as never;
  }

  async ended(id: string): Promise<Run> {
    return await until(
      'the run to end',
      async () => {
        const { run, webhookDelivery } = await this.ask<{
          run: Omit<Run, 'error'> | null;
          webhookDelivery: Pick<Run, 'error'> | null;
        }>(
          'query ($id: String!) { run(id: $id) { status stages { name status reason } } webhookDelivery(id: $id) { error { code message } } }',
          { id },
        );
        if (run === null || ['PENDING', 'RUNNING'].includes(run.status)) return undefined;
        return { ...run, error: webhookDelivery?.error ?? null };
      },
      60_000,
    );
  }

  async log(id: string): Promise<string> {
    const { events } = await readStream(`${this.url}/pipeline/${id}/logs`, this.token);
    return events
      .filter(({ event }) => event === 'stage_log')
      .map(({ data: { line } }) => String(line))
      .join('\n');
  }
}

interface Run {
  readonly status: string;
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly stages: readonly { readonly name: string; readonly status: string; readonly reason: string | null }[];
}

/** Of the folders below too, as long as they are there: workspaces are removed meanwhile. */
function filesOf(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return filesOf(path);
      return entry.isFile() ? [path] : [];
    });
  } catch (error) {
    if ((error as { readonly code?: unknown }).code === 'ENOENT') return [];
    throw error;
  }
}

/** Where the secret, or what is made of it for http, stands: in files below the folder, in what processes were called with and given. */
function leaks(folder: string): string[] {
  const basic = Buffer.from(`x-access-token:${CANARY}`).toString('base64');
  const needles = [CANARY, encodeURIComponent(CANARY), basic].map((text) => Buffer.from(text));
  const holds = (path: string): boolean => {
    try {
      const bytes = readFileSync(path);
      return needles.some((needle) => bytes.includes(needle));
    } catch {
      // It has gone meanwhile, or is nobody's to look into.
      return false;
    }
  };
  const processes = readdirSync('/proc')
    .filter((name) => /^\d+$/u.test(name) && Number(name) !== process.pid)
    .flatMap((pid) => [`/proc/${pid}/cmdline`, `/proc/${pid}/environ`]);
  return [...filesOf(folder), ...processes].filter(holds);
}

export interface Running {
  readonly url: string;
  /** All that it writes. */
  readonly folder: string;
  output(): string;
  stop(): Promise<unknown>;
}

/** `start` is given the variables that the product is to have, of whichever process. */
export function describeCloneSecret(where: string, start: (env: Record<string, string>) => Promise<Running>): void {
  describe(`a repository with a secret of its own (${where})`, () => {
    const shared = temporaryFolder('penstock-clone-');
    const host = new PrivateHost();
    let running: Running;
    let ada: User;
    let bob: User;

    beforeAll(async () => {
      await host.start();
      host.admitted.set('x-access-token', CANARY);
      const credentials = join(shared.path, 'credentials');
      writeFileSync(credentials, `${host.url.replace('://', `://server:${SERVERS_OWN}@`)}\n`, { mode: 0o600 });
      running = await start({
        JWT_SECRET,
        SERVICE_GIT_CREDENTIALS_FILE: credentials,
        SERVICE_FORK_POLICY: 'run',
        SERVICE_UNTRUSTED_ISOLATION: 'none',
      });
      [ada, bob] = await Promise.all([User.of(running.url, 1), User.of(running.url, 2)]);
      await ada.setSecret(CANARY);
      await ada.connect('CLONE_TOKEN');
    }, 120_000);
    afterAll(async () => {
      await running?.stop();
      await host.close();
      shared.remove();
    });

    const push = (user: User, commit: string): ReturnType<User['deliver']> =>
      user.deliver('push', githubPush({ url: host.url, commit, repository: NAMES.repository }));

    it(
      'is read with it from a push to its stages, which find nothing of it, and neither does anybody else',
      LONG,
      async () => {
        const [printed, go] = [join(shared.path, 'printed'), join(shared.path, 'go')];
        const commit = host.commit(`  look:
    run: |
      cat private.txt; cat .git/config; git log -1 --format=%H; env
      echo "processes: $(cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -c "kanari[e]/4711")"
      echo "files: $(grep -rl "kanari[e]/4711" /dev/shm . 2>/dev/null | wc -l)"
      echo "printed: kanarie""/4711+geel"
      touch ${printed}
      until [ -e ${go} ]; do sleep 0.05; done
`);
        const delivered = push(ada, commit);
        await until('the stage to have looked', () => existsSync(printed), 60_000);
        expect(leaks(running.folder)).toEqual([]);
        writeFileSync(go, '');
        const { run_id: id } = await delivered;
        expect(await ada.ended(id)).toMatchObject({ status: 'SUCCESS' });
        const log = await ada.log(id);
        expect(log).toContain('what is private, for the 1th time');
        expect(log).toContain(commit);
        expect(log).toContain('printed: ***');
        expect(log).not.toContain('kanarie');
        expect(log.split('\n')).toEqual(expect.arrayContaining(['processes: 0', 'files: 0']));
        expect(leaks(running.folder)).toEqual([]);
        expect(running.output()).not.toContain(CANARY);
        expect(new Set(host.asked)).toEqual(new Set(['x-access-token']));
        expect(await ada.ask('{ repositories { repository cloneSecret } secrets { name lastUsedAt } }')).toEqual({
          repositories: [{ repository: NAMES.repository, cloneSecret: 'CLONE_TOKEN' }],
          secrets: [{ name: 'CLONE_TOKEN', lastUsedAt: expect.any(String) }],
        });
      },
    );

    it(
      'is nobody else’s: another user who has connected it gets neither its files nor what was fetched of it',
      LONG,
      async () => {
        await bob.connect(null);
        const known = host.repository.git('rev-parse', 'HEAD');
        const { run_id: id } = await push(bob, known);
        expect(await bob.ended(id)).toMatchObject({ status: 'FAILED', error: { code: 'checkout' } });
        await bob.ask('mutation ($id: String) { setCloneSecret(id: $id, name: "CLONE_TOKEN") { cloneSecret } }', {
          id: bob.id,
        });
        const again = await push(bob, known);
        expect(await bob.ended(again.run_id)).toMatchObject({
          status: 'FAILED',
          error: { code: 'checkout', message: expect.stringContaining('there is no secret CLONE_TOKEN') },
        });
      },
    );

    it(
      'that is wrong fails the run with what to do, asks nothing of the server’s, and is read anew once it is right',
      LONG,
      async () => {
        host.admitted.set('server', SERVERS_OWN);
        await ada.setSecret('a-wrong-one');
        host.asked.length = 0;
        const { run_id: id } = await push(ada, host.commit('  only: {run: cat private.txt}\n'));
        const failed = await ada.ended(id);
        expect(failed).toMatchObject({ status: 'FAILED', error: { code: 'checkout' } });
        expect(failed.error?.message).toMatch(
          /refuses the credentials.*secret CLONE_TOKEN.*penstock secret set CLONE_TOKEN/u,
        );
        expect(failed.error?.message).not.toContain('a-wrong-one');
        expect(new Set(host.asked)).toEqual(new Set(['x-access-token']));
        const asked = host.asked.length;
        expect(asked).toBeLessThan(10);

        await ada.setSecret(`x-access-token:${CANARY}`);
        expect(host.asked).toHaveLength(asked);
        const { rerunPipeline } = await ada.ask<{ rerunPipeline: { run: { id: string; status: string } } }>(
          'mutation ($id: String!) { rerunPipeline(id: $id, waitSeconds: 60) { run { id status } } }',
          { id },
        );
        expect(rerunPipeline.run.status).toBe('SUCCESS');
        expect(new Set(host.asked)).toEqual(new Set(['x-access-token']));
      },
    );

    it(
      'that is deleted, bound to refs, or another than a token: the stage fails at its checkout, and its log says why',
      LONG,
      async () => {
        const [begun, go] = [join(shared.path, 'begun'), join(shared.path, 'go-on')];
        const stages = `  first: {run: 'touch ${begun}; until [ -e ${go} ]; do sleep 0.05; done'}\n  second: {after: first, workspace: fresh, run: cat private.txt}\n`;
        const delivered = push(ada, host.commit(stages));
        await until('the first stage', () => existsSync(begun), 60_000);
        await ada.ask('mutation { deleteSecret(name: "CLONE_TOKEN") }');
        writeFileSync(go, '');
        const { run_id: id } = await delivered;
        expect((await ada.ended(id)).stages).toMatchObject([
          { name: 'first', status: 'SUCCESS' },
          { name: 'second', status: 'FAILED', reason: 'checkout' },
        ]);
        expect(await ada.log(id)).toContain('there is no secret CLONE_TOKEN for git_host_a/acme/private');
        for (const [value, more, why] of [
          [CANARY, { repository: 'git_host_a/acme/private', refs: ['main'] }, 'set it without refs'],
          ['two\nlines', { repository: 'git_host_a/acme/private' }, 'neither a token'],
        ] as const) {
          await ada.setSecret(value, { ...more, ...('refs' in more ? { refs: [...more.refs] } : {}) } as never);
          const { run_id: other } = await push(ada, host.commit('  only: {run: "true"}\n'));
          expect((await ada.ended(other)).error?.message).toContain(why);
        }
        // The narrower wins.
        await ada.setSecret('a-wrong-one');
        await ada.setSecret(CANARY, { repository: 'git_host_a/acme/private' });
      },
    );

    it('reads what a fork proposes, whose stages find nothing of it, and what is dispatched', LONG, async () => {
      host.asked.length = 0;
      const commit = host.commit('  fork: {run: "cat private.txt; env; cat .git/config"}\n', 'proposed');
      host.repository.git('update-ref', 'refs/pull/7/head', commit);
      host.repository.git('checkout', '-q', 'main');
      host.repository.git('branch', '-q', '-D', 'proposed');
      const pull = githubPull({ url: host.url, commit, repository: NAMES.repository, fork: true });
      const { run_id: id } = await ada.deliver('pull_request', pull);
      expect(await ada.ended(id)).toMatchObject({ status: 'SUCCESS' });
      const log = await ada.log(id);
      expect(log).toContain('what is private');
      expect(log).not.toMatch(/kanarie|x-access-token/u);

      host.commit('  only: {run: cat private.txt}\n');
      const { dispatchPipeline } = await ada.ask<{ dispatchPipeline: { run: { status: string } } }>(
        'mutation ($provider: String, $repository: String) { dispatchPipeline(provider: $provider, repository: $repository, ref: "main", waitSeconds: 60) { run { status } } }',
        NAMES,
      );
      expect(dispatchPipeline.run.status).toBe('SUCCESS');
      expect(new Set(host.asked)).toEqual(new Set(['x-access-token']));
      expect(leaks(running.folder)).toEqual([]);
    });

    it(
      'is read with what the server has once it has none any more, and a connection that is gone has none',
      LONG,
      async () => {
        host.admitted.set('server', SERVERS_OWN);
        host.asked.length = 0;
        await ada.ask('mutation ($id: String) { setCloneSecret(id: $id) { cloneSecret } }', { id: ada.id });
        const { run_id: id } = await push(ada, host.commit('  only: {run: cat private.txt}\n'));
        expect(await ada.ended(id)).toMatchObject({ status: 'SUCCESS' });
        expect(new Set(host.asked)).toEqual(new Set(['server']));

        await ada.ask('mutation ($id: String) { setCloneSecret(id: $id, name: "CLONE_TOKEN") { cloneSecret } }', {
          id: ada.id,
        });
        await ada.ask('mutation ($id: String) { disconnectRepository(id: $id) }', { id: ada.id });
        await ada.connect(null);
        expect(await ada.ask('{ repositories { cloneSecret } }')).toEqual({ repositories: [{ cloneSecret: null }] });
      },
    );
  });
}
