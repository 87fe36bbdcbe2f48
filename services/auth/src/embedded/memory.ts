/** What the embedded provider remembers: logins under way, for as long as they last. Nothing outlives the process. */

/** Each login under way is a handful of entries; the oldest go first. */
const ENTRIES_MAX = 5_000;

interface Entry {
  readonly payload: Record<string, unknown>;
  readonly endsAt: number;
}

const entries = new Map<string, Entry>();

/** The adapter interface of `oidc-provider`: one instance for each kind of thing that it keeps. */
export class Memory {
  readonly #kind: string;

  constructor(kind: string) {
    this.#kind = kind;
  }

  async upsert(id: string, payload: Record<string, unknown>, expiresInSecs: number | undefined): Promise<void> {
    entries.delete(this.#key(id));
    entries.set(this.#key(id), {
      payload,
      endsAt: expiresInSecs === undefined ? Infinity : Date.now() + expiresInSecs * 1000,
    });
    for (const oldest of entries.keys()) {
      if (entries.size <= ENTRIES_MAX) break;
      entries.delete(oldest);
    }
  }

  async find(id: string): Promise<Record<string, unknown> | undefined> {
    const entry = entries.get(this.#key(id));
    return entry === undefined || entry.endsAt <= Date.now() ? undefined : entry.payload;
  }

  async findByUid(uid: string): Promise<Record<string, unknown> | undefined> {
    return this.#findBy('uid', uid);
  }

  async findByUserCode(userCode: string): Promise<Record<string, unknown> | undefined> {
    return this.#findBy('userCode', userCode);
  }

  async consume(id: string): Promise<void> {
    const entry = entries.get(this.#key(id));
    if (entry !== undefined) entry.payload['consumed'] = Math.floor(Date.now() / 1000);
  }

  async destroy(id: string): Promise<void> {
    entries.delete(this.#key(id));
  }

  async revokeByGrantId(grantId: string): Promise<void> {
    for (const [key, { payload }] of entries) if (payload['grantId'] === grantId) entries.delete(key);
  }

  #findBy(field: string, value: string): Record<string, unknown> | undefined {
    for (const [key, { payload, endsAt }] of entries) {
      if (key.startsWith(`${this.#kind} `) && payload[field] === value && endsAt > Date.now()) return payload;
    }
    return undefined;
  }

  #key(id: string): string {
    return `${this.#kind} ${id}`;
  }
}
