/**
 * Attempts whose stages go on without this process (P36), each in a file of its own until its result is on disk: its job, its
 * folders, what its executor notes, and its output so far, so that the next process goes on with the same log.
 *
 * ATTEMPT-RECORD-1. What `keep` was given is in the file when it returns, or the file is gone.
 * ATTEMPT-RECORD-3. What a stage was given of secrets, and its output as it was printed, are in memory only (P31).
 * ATTEMPT-RECORD-2. A file holds at most RECORD_BYTES_MAX. A louder attempt cannot be taken up again, nor can one after whose notes the
 *     disk was full, nor one of before the machine's last start.
 */
import { closeSync, ftruncateSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Job } from '@penstock/bus';
import type { StageNotes, StagePiece, StageRecord } from '@penstock/executor';
import type { Log } from '@penstock/telemetry/log';
import { writeAll } from '../report/disk.ts';
import type { Prepared } from '../workspace/preparation.ts';

/** What is known of an attempt when its stage is about to start. */
export interface RecordHead {
  readonly job: Job;
  readonly prepared: Prepared;
  readonly timeoutMs: number;
  /** What is masked in its output from its beginning on. */
  readonly masked?: readonly string[] | undefined;
}

/** An attempt that an earlier process has left. */
export interface EarlierAttempt extends RecordHead {
  /** The session whose lease has listed it last. */
  readonly holder: string;
  readonly notes: StageNotes;
  readonly output: readonly StagePiece[];
  readonly record: AttemptRecord;
}

/** Where attempts are recorded. */
export interface AttemptRecords {
  /** What an earlier process has left; of this one nothing. */
  readonly earlier: readonly EarlierAttempt[];
  /** For an attempt of this process. Undefined: its stages end with it. */
  open(job: Job): AttemptRecord | undefined;
  close(): void;
}

export interface RecordFolders {
  readonly disk: string;
  /** For attempts with secrets; absent: those end with their process. */
  readonly memory: string | undefined;
}

export const NO_RECORDS: AttemptRecords = { earlier: [], open: () => undefined, close: () => {} };

const RECORD_BYTES_MAX = 16 * 1024 * 1024;
const LINE_FEED = 0x0a;

/** A line of the file; `bytes` of output follow it. */
interface RecordLine {
  readonly boot?: string;
  readonly head?: RecordHead;
  readonly holder?: string;
  readonly notes?: Readonly<Record<string, string>>;
  readonly stream?: StagePiece['stream'];
  readonly bytes?: number;
}

export class AttemptRecordsOnDisk implements AttemptRecords {
  readonly earlier: readonly EarlierAttempt[];
  readonly #folders: RecordFolders;
  readonly #boot: string;
  readonly #log: Log;
  readonly close: () => void;

  /** `boot`: names the machine's last start. */
  constructor(folders: RecordFolders, boot: string, log: Log, close: () => void) {
    this.close = close;
    this.#folders = folders;
    this.#boot = boot;
    this.#log = log;
    mkdirSync(folders.disk, { recursive: true, mode: 0o700 });
    const all = [folders.disk, ...(folders.memory === undefined ? [] : [folders.memory])];
    this.earlier = all.flatMap((folder) => readdirSync(folder).flatMap((name) => this.#read(join(folder, name)) ?? []));
  }

  open({ session, credit, secrets }: Job): AttemptRecord | undefined {
    const folder = secrets === undefined ? this.#folders.disk : this.#folders.memory;
    if (folder === undefined) return undefined;
    return new AttemptRecord(join(folder, `${session}-${credit}`), this.#boot, this.#log);
  }

  /** Null, and the file is gone: it cannot be taken up. */
  #read(path: string): EarlierAttempt | null {
    try {
      const read = readRecord(readFileSync(path));
      if (read !== null && read.boot === this.#boot)
        return { ...read, record: new AttemptRecord(path, this.#boot, this.#log, read.length) };
    } catch (error) {
      this.#log.warn({ err: error }, 'the record of a stage attempt cannot be read; it is not taken up again');
    }
    rmSync(path, { recursive: true, force: true });
    return null;
  }
}

export class AttemptRecord implements StageRecord {
  readonly #path: string;
  readonly #boot: string;
  readonly #log: Log;
  #head: RecordLine | null = null;
  #fd: number | null = null;
  #length: number;
  #isOver = false;

  /** `length`: of what an earlier process has written whole. */
  constructor(path: string, boot: string, log: Log, length = 0) {
    this.#path = path;
    this.#boot = boot;
    this.#log = log;
    this.#length = length;
  }

  /** Written with the first note: an attempt of whose stage nothing was noted has none. */
  begin(head: RecordHead): void {
    this.#head = { boot: this.#boot, head, holder: head.job.session };
  }

  keep(notes: Readonly<Record<string, string>>, output?: StagePiece): void {
    this.#append(
      { notes, ...(output === undefined ? {} : { stream: output.stream, bytes: output.bytes.length }) },
      output?.bytes,
    );
  }

  /** The lease of this session lists it from now on. */
  heldBy(session: string): void {
    this.#append({ holder: session });
  }

  /** Its result is on disk, or it comes to none. Idempotent. */
  remove(): void {
    this.#isOver = true;
    if (this.#fd !== null) closeSync(this.#fd);
    this.#fd = null;
    if (this.#length > 0) rmSync(this.#path, { force: true });
  }

  #append(line: RecordLine, bytes: Uint8Array = new Uint8Array()): void {
    if (this.#isOver) return;
    try {
      const head = this.#length === 0 && this.#head !== null ? `${JSON.stringify(this.#head)}\n` : '';
      const text = Buffer.concat([Buffer.from(`${head}${JSON.stringify(line)}\n`), bytes]);
      if (this.#length + text.length > RECORD_BYTES_MAX) return this.remove();
      if (this.#fd === null) {
        this.#fd = openSync(this.#path, this.#length === 0 ? 'w' : 'r+', 0o600);
        // What a kill has cut short is not there.
        ftruncateSync(this.#fd, this.#length);
      }
      writeAll(this.#fd, text, this.#length);
      this.#length += text.length;
    } catch (error) {
      this.#log.warn({ err: error }, 'a stage attempt could not be recorded: a restart of the runner ends it');
      this.remove();
    }
  }
}

/** Null: there is no head. What stands behind the last whole line is none of it. */
function readRecord(
  file: Buffer,
): (Omit<EarlierAttempt, 'record'> & { readonly boot: string; readonly length: number }) | null {
  let first: RecordLine | undefined;
  let holder = '';
  const notes = new Map<string, string[]>();
  const output: StagePiece[] = [];
  let at = 0;
  for (let end = file.indexOf(LINE_FEED); end >= 0; end = file.indexOf(LINE_FEED, at)) {
    const line = JSON.parse(file.toString('utf8', at, end)) as RecordLine;
    const next = end + 1 + (line.bytes ?? 0);
    if (next > file.length) break;
    first ??= line;
    holder = line.holder ?? holder;
    for (const [name, value] of Object.entries(line.notes ?? {})) {
      const values = notes.get(name);
      if (values === undefined) notes.set(name, [value]);
      else values.push(value);
    }
    if (line.stream !== undefined) output.push({ stream: line.stream, bytes: file.subarray(end + 1, next) });
    at = next;
  }
  if (first?.head === undefined) return null;
  return { ...first.head, boot: first.boot ?? '', holder, notes, output, length: at };
}
