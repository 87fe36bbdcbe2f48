/**
 * From a `uses` to one version: the newest of its range that is not yanked and that the caller sees, or what the lock says.
 * What the extensions themselves use is resolved with the caller's eyes as well.
 */
import semver from 'semver';
import type { Tiers } from '@penstock/config';
import type { LockEntry, RegistryCaller, ResolveAnswer, ResolveRequest, Unresolved } from '@penstock/extension';
import { BadUserInput } from '@penstock/errors';
import { usesOffThread } from '@penstock/parse-pool';
import { parseUses, PIPELINE_LIMITS, type ResolvedExtension } from '@penstock/pipeline';
import { SERVICE_TENANT } from '@penstock/run';
import type { Catalogue } from '../catalogue/catalogue.ts';
import { byPrecedence, type ExtensionRecord, type VersionRecord } from '../catalogue/records.ts';
import { mayUsePrivate } from './rights.ts';
import type { SearchIndex } from '../search/search-index.ts';
import type { SigningKeys } from '../catalogue/signatures.ts';

export interface ResolverOptions {
  readonly catalogue: Catalogue;
  readonly index: SearchIndex;
  readonly keys: SigningKeys;
  readonly tiers: Tiers;
  readonly policy: 'any' | 'signed';
}

const LOCK_ENTRIES_MAX = 1_000;
const CANDIDATES_MAX = 3;
/** Unknown extensions of one request that others are suggested for: for each of them all that there are are looked through. */
const SUGGESTIONS_MAX = 10;
/** Of one manifest, which takes a tenth of a second; the rest is waiting for other files. */
const READ_MS_MAX = 10_000;

/** What is resolved together. */
interface Resolving {
  readonly caller: RegistryCaller;
  suggestionsLeft: number;
}

interface Question {
  readonly resolving: Resolving;
  readonly caller: RegistryCaller;
  readonly uses: string;
  readonly id: string;
  readonly range: string;
}

interface Origin {
  /** As it stands in the file. */
  readonly uses: string;
  readonly user: string;
}

type Found = { readonly record: ExtensionRecord; readonly version: VersionRecord };

/** Whose turn it is: a user's. The API key may stand for a whole organisation, and its tenant for strangers: those go by extension. */
function turnOf({ tenant }: RegistryCaller, { id }: Pick<ResolvedExtension, 'id'>): string {
  return tenant === null || tenant === SERVICE_TENANT ? `${SERVICE_TENANT}/${id}` : tenant;
}

export class Resolver {
  readonly #options: ResolverOptions;

  constructor(options: ResolverOptions) {
    this.#options = options;
  }

  /** Throws `BadUserInput` with `extensions.unresolved`, which has all that could not be resolved. */
  async resolve({ caller, uses, lock = [] }: ResolveRequest): Promise<ResolveAnswer> {
    if (lock.length > LOCK_ENTRIES_MAX) throw new BadUserInput(`The lock has more than ${LOCK_ENTRIES_MAX} entries.`);
    const locked = new Map(lock.map((entry) => [entry.uses, entry]));
    const resolved = new Map<string, ResolvedExtension>();
    const unresolved: Unresolved[] = [];
    const asked = new Set<string>();
    /** For what extensions use themselves: where in the file it begins, and which extension uses it. */
    const origins = new Map<string, Origin>();
    const resolving = { caller, suggestionsLeft: SUGGESTIONS_MAX };
    let length = 0;
    for (let level = [...new Set(uses)]; level.length > 0;) {
      for (const each of level) asked.add(each);
      if (asked.size > PIPELINE_LIMITS.extensionsMax)
        throw new BadUserInput(`The file leads to more than ${PIPELINE_LIMITS.extensionsMax} extensions.`);
      const answers = await Promise.all(level.map((each) => this.#one(resolving, each, locked.get(each))));
      const next = new Set<string>();
      for (const answer of answers) {
        if ('message' in answer) {
          unresolved.push(fromFile(answer, origins.get(answer.uses)));
          continue;
        }
        resolved.set(answer.uses, answer);
        length += answer.manifest.length;
        if (length > PIPELINE_LIMITS.extensionsTextMax)
          throw new BadUserInput(
            `The manifests of all extensions in use are larger than ${PIPELINE_LIMITS.extensionsTextMax / 1024} KiB.`,
          );
        // Somebody's text, which may be a tree of 40,000 values.
        for (const inner of await usesOffThread(answer.manifest, turnOf(caller, answer), READ_MS_MAX)) {
          if (asked.has(inner) || next.has(inner)) continue;
          next.add(inner);
          origins.set(inner, {
            uses: origins.get(answer.uses)?.uses ?? answer.uses,
            user: `${answer.id}@${answer.version}`,
          });
        }
      }
      level = [...next];
    }
    if (unresolved.length > 0)
      throw new BadUserInput(unresolved.map(({ message }) => message).join(' '), { unresolved });
    return { extensions: [...resolved.values()] };
  }

  async #one(resolving: Resolving, uses: string, lock: LockEntry | undefined): Promise<ResolvedExtension | Unresolved> {
    const reference = parseUses(uses);
    if ('message' in reference)
      return refusal(
        uses,
        `${reference.message}${reference.suggestion === undefined ? '' : ` (${reference.suggestion})`}.`,
      );
    const { caller } = resolving;
    const question = { resolving, caller, uses, ...reference };
    const found = lock === undefined ? await this.#newest(question) : await this.#locked(question, lock);
    if ('message' in found) return found;
    const { record, version } = found;
    if (record.scope !== '' && !mayUsePrivate(caller, this.#options.tiers))
      return refusal(
        uses,
        `'${record.extensionId}' is private, and the tier '${caller.tier}' may not use private extensions.`,
      );
    const manifest = await this.#options.catalogue.manifestOf(version);
    return { uses, id: record.extensionId, version: version.version, hash: version.packageHash, manifest };
  }

  async #newest({ resolving, caller, uses, id, range }: Question): Promise<Found | Unresolved> {
    if (semver.validRange(range) === null)
      return refusal(uses, `'${range}' is no version and no range of versions (such as '2.1.0', '^2.1' or '2.x').`);
    const record = await this.#options.catalogue.visible(id, caller.tenant);
    if (record === null) {
      resolving.suggestionsLeft -= 1;
      const candidates = resolving.suggestionsLeft < 0 ? [] : this.#options.index.candidates(id, caller.tenant);
      return refusal(uses, `There is no extension '${id}'${meant(candidates)}`, candidates);
    }
    const ordered = byPrecedence(record.versions);
    const fitting = ordered.filter(({ version }) => semver.satisfies(version, range));
    for (const version of fitting) {
      if (!version.yanked && (await this.#isAllowed(record, version))) return { record, version };
    }
    const others = ordered
      .filter(({ yanked }) => !yanked)
      .slice(0, CANDIDATES_MAX)
      .map(({ version }) => `${id}@${version}`);
    if (fitting.length === 0)
      return refusal(uses, `No version of '${id}' satisfies '${range}'${meant(others)}`, others);
    if (fitting.every(({ yanked }) => yanked))
      return refusal(
        uses,
        `'${fitting[0]?.version}' of '${id}' was yanked and is used by locks only${meant(others)}`,
        others,
      );
    return refusal(
      uses,
      `No version of '${id}' that satisfies '${range}' is signed with a key of its owner, and this server uses signed extensions only.`,
    );
  }

  /** A yanked version too, but only with the very bytes of the lock. */
  async #locked({ caller, uses, id, range }: Question, lock: LockEntry): Promise<Found | Unresolved> {
    const found = (await this.#options.catalogue.visibleOfPackage(lock.hash, caller.tenant)).find(
      ({ record, version }) => record.extensionId === id && version.version === lock.version,
    );
    const again = "Lock the file anew ('penstock lock --update').";
    if (found === undefined)
      return refusal(
        uses,
        `The lock says '${lock.id}@${lock.version}' for '${uses}', with bytes that no such version has here. ${again}`,
      );
    if (!semver.satisfies(lock.version, range, { includePrerelease: true }))
      return refusal(uses, `The lock says '${lock.version}' for '${uses}', which it does not satisfy. ${again}`);
    if (await this.#isAllowed(found.record, found.version)) return found;
    return refusal(
      uses,
      `'${id}@${lock.version}' is not signed with a key of its owner, and this server uses signed extensions only.`,
    );
  }

  async #isAllowed({ tenant }: ExtensionRecord, { packageHash, signature }: VersionRecord): Promise<boolean> {
    return this.#options.policy === 'any' || (await this.#options.keys.isSigned(tenant, packageHash, signature));
  }
}

function refusal(uses: string, message: string, candidates: readonly string[] = []): Unresolved {
  return { uses, message, candidates };
}

/** Whoever wrote the file finds the place in it, and not that of an extension inside an extension; nor can they mend that one. */
function fromFile(inner: Unresolved, origin: Origin | undefined): Unresolved {
  if (origin === undefined) return inner;
  return { uses: origin.uses, message: `'${origin.user}' uses '${inner.uses}': ${inner.message}`, candidates: [] };
}

function meant(candidates: readonly string[]): string {
  return candidates.length === 0 ? '.' : `; did you mean ${candidates.map((each) => `'${each}'`).join(' or ')}?`;
}
