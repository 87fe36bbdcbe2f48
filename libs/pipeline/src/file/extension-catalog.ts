/**
 * The extensions that one file can use: what its `uses` were resolved to, each manifest read when it is first asked for
 * and once. Owns nothing beyond the parsing of one file.
 *
 * CATALOG-1. An extension that leads back to itself, or more than `extensionDepthMax` levels down, is refused. The depth is a
 *    property of the extension and not of the way to it, so what is remembered holds for every place that uses it.
 * CATALOG-2. The manifest must be of the very extension and version that the list says: a list is written by others.
 */
import type { ExtensionBody, LoadedExtension } from './drafts.ts';
import { diagnosticLine } from '../text/diagnostic-text.ts';
import type { Diagnostic, ResolvedExtension } from '../model/definition.ts';
import { PIPELINE_LIMITS } from '../model/limits.ts';
import { quoted } from '../text/printable.ts';
import { parseUses } from './uses.ts';
import type { UsesFault } from './uses.ts';

export type Finding =
  | { readonly extension: LoadedExtension }
  | { readonly fault: UsesFault }
  | { readonly unresolved: true };

export type ReadManifest = (
  text: string,
  extensions: ExtensionCatalog,
) => { readonly body: ExtensionBody } | { readonly diagnostics: readonly Diagnostic[] };

export interface ExtensionCatalogOptions {
  readonly acceptsUnresolved: boolean;
  /** They are used by stages that are added to a run, whose extensions are what its file uses. */
  readonly isOfRun?: boolean | undefined;
  readonly standing?: boolean | undefined;
  readonly read: ReadManifest;
  /** Why what is not in the list is not in it, by its `uses`. */
  readonly refusals?: ReadonlyMap<string, string> | undefined;
}

export class ExtensionCatalog {
  /** See `ParseOptions`; of the manifests as well. */
  readonly standing: boolean;
  readonly #resolved = new Map<string, ResolvedExtension>();
  readonly #findings = new Map<string, Finding>();
  /** The `uses` whose manifests are being read, the outermost first. */
  readonly #open: string[] = [];
  readonly #acceptsUnresolved: boolean;
  readonly #isOfRun: boolean;
  readonly #read: ReadManifest;
  readonly #refusals: ReadonlyMap<string, string> | undefined;
  readonly #fault: UsesFault | undefined;

  constructor(resolved: readonly ResolvedExtension[], options: ExtensionCatalogOptions) {
    this.#acceptsUnresolved = options.acceptsUnresolved;
    this.#isOfRun = options.isOfRun === true;
    this.#read = options.read;
    this.standing = options.standing === true;
    this.#refusals = options.refusals;
    const text = resolved.reduce((sum, { manifest }) => sum + manifest.length, 0);
    if (resolved.length > PIPELINE_LIMITS.extensionsMax)
      this.#fault = { message: `the file leads to more than ${PIPELINE_LIMITS.extensionsMax} extensions` };
    else if (text > PIPELINE_LIMITS.extensionsTextMax)
      this.#fault = {
        message: `the manifests of all extensions in use are larger than ${PIPELINE_LIMITS.extensionsTextMax / 1024} KiB`,
      };
    else for (const entry of resolved) if (!this.#resolved.has(entry.uses)) this.#resolved.set(entry.uses, entry);
  }

  /** What a `uses` stands for. */
  find(uses: string): Finding {
    const known = this.#findings.get(uses);
    if (known !== undefined) return known;
    const cycle = this.#open.indexOf(uses);
    if (cycle !== -1)
      return {
        fault: {
          message: `extension ${quoted(uses)} uses itself: ${[...this.#open.slice(cycle), uses].map(quoted).join(' uses ')}`,
        },
      };
    if (this.#open.length >= PIPELINE_LIMITS.extensionDepthMax) return { fault: tooDeep(uses) };
    this.#open.push(uses);
    const finding = this.#load(uses);
    this.#open.pop();
    this.#findings.set(uses, finding);
    return finding;
  }

  #load(uses: string): Finding {
    const reference = parseUses(uses);
    if (!('id' in reference)) return { fault: reference };
    if (this.#fault !== undefined) return { fault: this.#fault };
    const resolved = this.#resolved.get(uses);
    if (resolved === undefined) {
      const refusal = this.#refusals?.get(uses);
      if (refusal !== undefined) return { fault: { message: refusal } };
      if (this.#acceptsUnresolved) return { unresolved: true };
      return { fault: this.#isOfRun ? notOfRun(uses) : unresolvedHere(uses) };
    }
    const { id, version, hash } = resolved;
    const read = this.#read(resolved.manifest, this);
    if ('diagnostics' in read) {
      const [first] = read.diagnostics;
      return {
        fault: {
          message: `extension ${quoted(`${id}@${version}`)} cannot be used: its extension.yaml is refused, ${first === undefined ? 'without a reason' : diagnosticLine(first)}`,
        },
      };
    }
    const { body } = read;
    if (body.id !== id || body.version !== version || reference.id !== id) {
      return {
        fault: {
          message: `extension ${quoted(uses)} was resolved to ${quoted(`${id}@${version}`)}, and its manifest is of ${quoted(`${body.id}@${body.version}`)}`,
        },
      };
    }
    const heights = body.level?.drafts.map(({ use }) => use?.extension?.height ?? 0) ?? [];
    const height = 1 + Math.max(0, ...heights);
    return height > PIPELINE_LIMITS.extensionDepthMax
      ? { fault: tooDeep(uses) }
      : { extension: { id, version, hash, body, height } };
  }
}

function tooDeep(uses: string): UsesFault {
  return {
    message: `extensions use one another more than ${PIPELINE_LIMITS.extensionDepthMax} levels deep at ${quoted(uses)}`,
  };
}

function unresolvedHere(uses: string): UsesFault {
  return {
    message: `extension ${quoted(uses)} cannot be resolved here`,
    suggestion: 'a server resolves it; on this machine penstock lock does, once',
  };
}

function notOfRun(uses: string): UsesFault {
  return {
    message: `extension ${quoted(uses)} is not among those of the run`,
    suggestion: "stages that are added use what the pipeline file uses, by the very text of its 'uses'",
  };
}
