/**
 * Pipeline files that were found good, by the digest of all that decides what they mean: their text, and what their `uses` stand for. A
 * file is triggered again and again, and is read once.
 *
 *  CHECKEDFILES-1 A text that was good by itself uses no extension: nobody is asked what it uses, nor is it read for that.
 *  CHECKEDFILES-2 What a `uses` stands for is asked at each trigger: a range may have got a newer version since.
 */
import { hash } from 'node:crypto';
import type { LockEntry } from '@penstock/extension';
import type { Caller } from '@penstock/identity';
import { parsePipelineOffThread } from '@penstock/parse-pool';
import type { ParseResult, PipelineDefinition, ResolvedExtension } from '@penstock/pipeline';
import { badPipeline } from './bad-pipeline.ts';
import type { UsesResolver } from './extensions.ts';
import { readingTurn } from './reading-turn.ts';

/** What a trigger needs to know of a file. */
export type CheckedFile = Pick<PipelineDefinition, 'name' | 'inputs'>;

export interface CheckedFilesSettings {
  readonly uses: UsesResolver;
  /** Called with a file that has been read, and uses no extension. */
  readonly onRead?: ((text: string, read: ParseResult) => void) | undefined;
  readonly parse?: typeof parsePipelineOffThread;
}

/** Least recently used first out. Whoever triggers so many others in between has another's read again, which takes milliseconds. */
const FILES_MAX = 1_000;
/** Characters of what is remembered of one; the choices of inputs can fill a whole file. */
const LENGTH_MAX = 8 * 1024;
/** The costliest files take half a second; the rest is waiting for those of others. */
const PARSE_MS_MAX = 5_000;

export class CheckedFiles {
  readonly #settings: CheckedFilesSettings;
  readonly #known = new Map<string, CheckedFile>();

  constructor(settings: CheckedFilesSettings) {
    this.#settings = settings;
  }

  /** Of a text that was sent. Throws `BadUserInput` with all diagnostics of a bad one. */
  async check(
    caller: Caller,
    yaml: string,
    lock: readonly LockEntry[] | undefined,
    tenant: string,
  ): Promise<{ readonly file: CheckedFile; readonly extensions: readonly ResolvedExtension[] }> {
    const known = this.#recall(digestOf(yaml, []));
    if (known !== undefined) return { file: known, extensions: [] };
    const extensions = await this.#settings.uses.resolve(caller, yaml, lock);
    return { file: await this.checkResolved(yaml, extensions, tenant), extensions };
  }

  /** As `check`, of a text whose extensions are known; `isTemplate`: it is the server's, and knows `webhook`. */
  async checkResolved(
    yaml: string,
    extensions: readonly ResolvedExtension[],
    tenant: string,
    isTemplate = false,
  ): Promise<CheckedFile> {
    const digest = isTemplate ? `template ${digestOf(yaml, extensions)}` : digestOf(yaml, extensions);
    const known = this.#recall(digest);
    if (known !== undefined) return known;
    const parse = this.#settings.parse ?? parsePipelineOffThread;
    const isPlain = extensions.length === 0;
    const options = {
      ...(isPlain ? {} : { extensions }),
      ...(isTemplate ? { template: true } : {}),
      key: readingTurn(tenant, yaml),
    };
    const parsed = await parse(yaml, options, PARSE_MS_MAX);
    if (!parsed.ok) throw badPipeline(parsed.diagnostics);
    if (isPlain && !isTemplate) this.#settings.onRead?.(yaml, parsed);
    const { name, inputs } = parsed.definition;
    const checked = { name, ...(inputs === undefined ? {} : { inputs }) };
    this.#remember(digest, checked);
    return checked;
  }

  #recall(digest: string): CheckedFile | undefined {
    const known = this.#known.get(digest);
    if (known === undefined) return undefined;
    this.#known.delete(digest);
    this.#known.set(digest, known);
    return known;
  }

  #remember(digest: string, checked: CheckedFile): void {
    if (JSON.stringify(checked).length > LENGTH_MAX) return;
    if (this.#known.size >= FILES_MAX) this.#known.delete(this.#known.keys().next().value ?? '');
    this.#known.set(digest, checked);
  }
}

/** Of the text and of the rest apart: no text that is sent looks like another one with its extensions. */
function digestOf(yaml: string, extensions: readonly ResolvedExtension[]): string {
  const ofText = hash('sha256', yaml, 'base64');
  return extensions.length === 0 ? ofText : `${ofText} ${hash('sha256', JSON.stringify(extensions), 'base64')}`;
}
