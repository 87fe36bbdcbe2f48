/**
 * Publications: a package goes up and is published as the next version of one of a few extensions; both are repeated until they are
 * answered. The account has what was answered, and what the registry has of it when all is over.
 */
import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packFolder } from '@penstock/extension';
import type { Random } from '../../support/random.ts';
import { ask, askGraphql, untilAnswered } from './http.ts';

export interface PublishAccount {
  /** By extension and version: the hash that was published. */
  readonly accepted: ReadonlyMap<string, string>;
  /** What there is in the end, in the same words, one entry for each version in the list. */
  readonly listed: readonly (readonly [string, string])[];
  /** Hashes of accepted packages whose bytes are other ones, or gone. */
  readonly spoiled: readonly string[];
  readonly refused: readonly string[];
}

const EXTENSIONS = 3;
const PUBLISH =
  'mutation ($hash: String!) { publishExtension(packageHash: $hash) { version { version packageHash } } }';
const VERSIONS = 'query ($id: String!) { extensionVersions(extension_id: $id) { version packageHash } }';
const AGAIN_SHARE = 0.3;
const LOOK_MS_MAX = 30_000;

export class PublishLoad {
  readonly #url: string;
  readonly #apiKey: string;
  readonly #random: Random;
  readonly #versions = new Map<string, number>();
  readonly #accepted = new Map<string, string>();
  readonly #refused: string[] = [];

  constructor(url: string, apiKey: string, random: Random) {
    this.#url = url;
    this.#apiKey = apiKey;
    this.#random = random;
  }

  async publish(signal: AbortSignal): Promise<void> {
    const id = `utility/greet-${this.#random.int(EXTENSIONS)}`;
    const next = (this.#versions.get(id) ?? 0) + 1;
    this.#versions.set(id, next);
    const name = `${id}@1.0.${next}`;
    const bytes = await packageOf(id, `1.0.${next}`);
    const hash = createHash('sha256').update(bytes).digest('hex');
    const uploaded = await untilAnswered(() => this.#upload(hash, bytes), this.#random, signal);
    if (uploaded === null) return;
    if (uploaded.status !== 200 && uploaded.status !== 201)
      return void this.#refused.push(`the upload of ${name}: ${uploaded.status} ${JSON.stringify(uploaded.body)}`);
    await this.#publish(name, hash, signal);
    // Of the same bytes, as a client does it that has lost the answer: it changes nothing.
    if (this.#random.chance(AGAIN_SHARE)) await this.#publish(name, hash, signal);
  }

  async #publish(name: string, hash: string, signal: AbortSignal): Promise<void> {
    const published = await untilAnswered(
      () => askGraphql(this.#url, this.#apiKey, PUBLISH, { hash }),
      this.#random,
      signal,
    );
    if (published === null) return;
    if (published.body['errors'] === undefined) this.#accepted.set(name, hash);
    else this.#refused.push(`${name}: ${JSON.stringify(published.body['errors'])}`);
  }

  async account(): Promise<PublishAccount> {
    const signal = AbortSignal.timeout(LOOK_MS_MAX);
    const listed: [string, string][] = [];
    for (const id of this.#versions.keys()) {
      const answer = await untilAnswered(
        () => askGraphql(this.#url, this.#apiKey, VERSIONS, { id }),
        this.#random,
        signal,
      );
      const data = answer?.body['data'] as
        | { readonly extensionVersions?: readonly { readonly version: string; readonly packageHash: string }[] | null }
        | null
        | undefined;
      for (const { version, packageHash } of data?.extensionVersions ?? [])
        listed.push([`${id}@${version}`, packageHash]);
    }
    const spoiled: string[] = [];
    for (const hash of this.#accepted.values()) if (!(await this.#isWhole(hash))) spoiled.push(hash);
    return { accepted: this.#accepted, listed, spoiled, refused: this.#refused };
  }

  #upload(hash: string, bytes: Buffer): ReturnType<typeof ask> {
    return ask(`${this.#url}/registry/packages/${hash}`, {
      method: 'PUT',
      body: bytes,
      headers: { 'content-type': 'application/gzip', authorization: `Bearer ${this.#apiKey}` },
    });
  }

  async #isWhole(hash: string): Promise<boolean> {
    const response = await fetch(`${this.#url}/registry/packages/${hash}`, {
      headers: { authorization: `Bearer ${this.#apiKey}` },
      signal: AbortSignal.timeout(LOOK_MS_MAX),
    });
    const bytes = Buffer.from(await response.arrayBuffer());
    return createHash('sha256').update(bytes).digest('hex') === hash;
  }
}

async function packageOf(id: string, version: string): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), 'penstock-chaos-package-'));
  try {
    await writeFile(
      join(folder, 'extension.yaml'),
      `id: ${id}\nversion: ${version}\ndescription: Greets\nrun: echo hello from ${version}\n`,
    );
    await writeFile(join(folder, 'README.md'), `# Greets ${version}\n`);
    return Buffer.from((await packFolder(folder)).bytes);
  } finally {
    await rm(folder, { recursive: true });
  }
}
