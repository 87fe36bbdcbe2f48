/** Two users and the two slots of one server (SERVICE_KEY_SLOTS), through the public API: each stage ends when the test says so. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { deviceLogin } from '../support/device-login.ts';
import { startServer, temporaryFolder, TRIGGER, type RunningServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

const SLOTS = 2;
const TEST_MS = 180_000;
const LOOK_MS = 60_000;

const folder = temporaryFolder('penstock-fair-slots-');
let server: RunningServer;

beforeAll(async () => {
  server = await startServer({ env: { SERVICE_SLOTS: String(SLOTS) } });
}, TEST_MS);
afterAll(async () => {
  await server.stop();
  folder.remove();
}, TEST_MS);

class User {
  readonly #token: string;
  readonly #folder: string;
  #run = '';

  private constructor(name: string, token: string) {
    this.#token = token;
    this.#folder = join(folder.path, name);
    mkdirSync(this.#folder);
  }

  static async named(name: string): Promise<User> {
    return new User(name, (await deviceLogin(server.url, name)).access_token);
  }

  /** A run of so many stages that need nothing of each other; each waits for its file. */
  async triggers(stages: number): Promise<void> {
    const names = Array.from({ length: stages }, (_, index) => `s${index}`);
    const yaml = `pipeline: {name: shared}\nstages:\n${names
      .map((name) => `  ${name}:\n    run: while [ ! -e ${join(this.#folder, name)} ]; do sleep 0.05; done\n`)
      .join('')}`;
    const data = await this.#ask<{ triggerPipeline: { run: { id: string } } }>(TRIGGER, { yaml, waitSeconds: 0 });
    this.#run = data.triggerPipeline.run.id;
  }

  async stages(status: string): Promise<readonly string[]> {
    const query = 'query ($id: String!) { run(id: $id) { stages { name status } } }';
    const { run } = await this.#ask<{ run: { stages: { name: string; status: string }[] } }>(query, { id: this.#run });
    return run.stages.flatMap((stage) => (stage.status === status ? [stage.name] : []));
  }

  async has(running: number, ended: number): Promise<void> {
    const have = async (): Promise<boolean> =>
      (await this.stages('RUNNING')).length === running && (await this.stages('SUCCESS')).length === ended;
    await until(`${running} running, ${ended} ended`, have, LOOK_MS);
  }

  /** One of those that run ends. */
  async ends(): Promise<void> {
    const [name] = await this.stages('RUNNING');
    if (name === undefined) throw new Error('no stage runs');
    writeFileSync(join(this.#folder, name), '');
  }

  async #ask<T>(query: string, variables: object): Promise<T> {
    const response = await fetch(`${server.url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${this.#token}` },
      body: JSON.stringify({ query, variables }),
    });
    const { data, errors } = (await response.json()) as { readonly data: T; readonly errors?: unknown };
    if (errors !== undefined) throw new Error(JSON.stringify(errors));
    return data;
  }
}

it(
  'six long stages of one user make another wait for one of them to end, and each has half of the slots while both wait',
  async () => {
    const [ada, bob] = await Promise.all([User.named('ada'), User.named('bob')]);
    await ada.triggers(6);
    // Alone she may have them all.
    await ada.has(SLOTS, 0);
    await bob.triggers(3);
    await until('his stages wait', async () => (await bob.stages('QUEUED')).length === 3, LOOK_MS);
    expect(await ada.stages('RUNNING')).toHaveLength(SLOTS);

    // One turnover of a slot, though four of hers have waited for longer.
    await ada.ends();
    await bob.has(1, 0);
    await ada.has(1, 1);
    // The slot that he gives back is his again: she has her half.
    await bob.ends();
    await bob.has(1, 1);
    await ada.has(1, 1);
    // And hers is hers: he has his.
    await ada.ends();
    await ada.has(1, 2);
    await bob.has(1, 1);
    await bob.ends();
    await bob.has(1, 2);
    await ada.has(1, 2);
    // Nobody else waits any more.
    await bob.ends();
    await bob.has(0, 3);
    await ada.has(SLOTS, 2);
    await ada.ends();
    await ada.has(SLOTS, 3);
  },
  TEST_MS,
);
