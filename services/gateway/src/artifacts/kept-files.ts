/**
 * Reads what stages have kept, from the service that keeps it. It remembers lists of files that were read lately, by their
 * hash, which is what they are.
 */
import { createHash } from 'node:crypto';
import {
  ArtifactsFailed,
  decodeManifest,
  DirectWay,
  readContent,
  MANIFEST_BYTES_MAX,
  type KeptFile,
  type PartAnswer,
  type PartRequest,
} from '@penstock/artifacts';
import type { Bus } from '@penstock/bus';
import { NotFound, Unavailable } from '@penstock/errors';
import { callService } from '@penstock/service';
import type { RunId, RunView, StageView } from '@penstock/run';
import type { ByteRange } from '@penstock/http';

/** Of all remembered lists. */
const REMEMBERED_FILES_MAX = 50_000;
/** Parts asked for at once. */
const AHEAD = 5;
const PART_MS_MAX = 20_000;
const DAMAGED = 'The list of kept files is damaged.';

/** The service that keeps files, where it lives in the same process. */
export interface KeptContents {
  /** Unchecked. Throws NotFound, Unavailable. */
  read(runId: string, sha256: string, range: ByteRange): AsyncIterable<Uint8Array>;
}

export class KeptFiles {
  readonly #bus: Bus;
  readonly #now: () => number;
  readonly #contents: KeptContents | undefined;
  readonly #way = new DirectWay();
  readonly #remembered = new Map<string, readonly KeptFile[]>();
  #rememberedFiles = 0;

  /** `contents`: where they need not be asked for on the bus. */
  constructor(bus: Bus, now: () => number, contents?: KeptContents) {
    this.#bus = bus;
    this.#now = now;
    this.#contents = contents;
  }

  /** What the list of a stage names. Undefined: there is none, or none any more. */
  async of(
    run: Pick<RunView, 'id'>,
    artifacts: StageView['artifacts' | 'report'],
  ): Promise<readonly KeptFile[] | undefined> {
    if (artifacts === undefined || artifacts.expiresAt <= this.#now()) return undefined;
    const runId = keptIn(run, artifacts);
    const id = `${runId} ${artifacts.manifest}`;
    const known = this.#remembered.get(id);
    if (known !== undefined) {
      this.#remembered.delete(id);
      this.#remembered.set(id, known);
      return known;
    }
    let files: readonly KeptFile[];
    try {
      files = decodeManifest(await this.#list(runId, artifacts.manifest));
    } catch (error) {
      if (error instanceof NotFound) return undefined;
      // A machine of a tenant's own can name what is none.
      if (error instanceof ArtifactsFailed) throw new Unavailable(DAMAGED, { cause: error });
      throw error;
    }
    this.#remember(id, files);
    return files;
  }

  /** Its bytes, checked where all of them are read: who has read to the end has what was kept. */
  async *read(runId: string, { sha256, sizeBytes }: KeptFile, range?: ByteRange): AsyncGenerator<Uint8Array, void> {
    const { from, to } = range ?? { from: 0, to: sizeBytes };
    if (from >= to) return;
    const hash = range === undefined ? createHash('sha256') : undefined;
    const pieces =
      this.#contents === undefined
        ? this.#parts(runId, sha256, from, to)
        : this.#contents.read(runId, sha256, { from, to });
    let given = from;
    for await (const piece of pieces) {
      const wanted = piece.subarray(0, to - given);
      given += wanted.length;
      hash?.update(wanted);
      if (given >= to && hash !== undefined && hash.digest('hex') !== sha256)
        throw new Unavailable('The kept file is damaged.');
      if (wanted.length > 0) yield wanted;
      if (given >= to) return;
    }
    throw new Unavailable('The kept file is damaged.');
  }

  /** Of the service that keeps it. */
  async *#parts(runId: string, sha256: string, from: number, to: number): AsyncGenerator<Uint8Array, void> {
    const part = (offset: number, direct: true | undefined): Promise<PartAnswer> =>
      this.#part(runId, sha256, offset, direct);
    for await (const { bytes } of readContent({ part, from, to, partsAtOnce: AHEAD, way: this.#way })) yield bytes;
  }

  async #list(runId: string, sha256: string): Promise<Buffer> {
    const parts: Buffer[] = [];
    for (let offset = 0, size = 1; offset < size;) {
      const part = await this.#part(runId, sha256, offset);
      const bytes = bytesOf(part.data);
      size = part.sizeBytes;
      if (bytes.length === 0 || size > MANIFEST_BYTES_MAX) throw new Unavailable(DAMAGED);
      parts.push(bytes);
      offset += bytes.length;
    }
    return Buffer.concat(parts);
  }

  async #part(runId: string, sha256: string, offset: number, direct?: true | undefined): Promise<PartAnswer> {
    const request = { runId, sha256, offset, raw: true, direct } as const;
    return await callService<PartRequest, PartAnswer>(
      this.#bus,
      'registry',
      'artifact.get',
      request,
      PART_MS_MAX,
      PART_MS_MAX,
    );
  }

  #remember(id: string, files: readonly KeptFile[]): void {
    // Another may have read it meanwhile.
    this.#rememberedFiles += files.length - (this.#remembered.get(id)?.length ?? 0);
    this.#remembered.set(id, files);
    for (const [oldest, { length }] of this.#remembered) {
      if (this.#rememberedFiles <= REMEMBERED_FILES_MAX) break;
      this.#remembered.delete(oldest);
      this.#rememberedFiles -= length;
    }
  }
}

/** The run whose attempt has kept them: those of an adopted stage are another's. */
export function keptIn({ id }: Pick<RunView, 'id'>, artifacts: StageView['artifacts' | 'report']): RunId {
  return artifacts !== undefined && 'run' in artifacts ? (artifacts.run ?? id) : id;
}

function bytesOf(data: PartAnswer['data']): Buffer {
  return typeof data === 'string'
    ? Buffer.from(data, 'base64')
    : Buffer.from(data.buffer, data.byteOffset, data.length);
}
