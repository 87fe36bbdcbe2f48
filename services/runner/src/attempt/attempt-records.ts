/**
 * Attempts whose stages go on without this process (P36), each in a file of its own until its result is on disk: its job, its
 * folders, what its executor notes, and what its log has so far, so that the next process goes on with the same one.
 *
 * ATTEMPT-RECORD-1. What `keep` was given is in the file when it returns, or the file is gone.
 * ATTEMPT-RECORD-3. What a stage was given of secrets, and its output as it was printed, are in memory only (P31).
 * ATTEMPT-RECORD-2. From where on the log does not keep the output's middle, its end is recorded in two files by turns, of END_BYTES_MAX
 *     each: nothing of that has gone to anybody yet. What stands before is as long as the log (P21), and no record in memory has more than
 *     MEMORY_BYTES_MAX. A louder attempt cannot be taken up again, nor can one after whose notes the disk was full, nor one of before the
 *     machine's last start.
 */
import {
  closeSync,
  existsSync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import type { Job } from '@penstock/bus';
import type { StageNotes, StagePiece, StageRecord } from '@penstock/executor';
import type { Log } from '@penstock/telemetry/log';
import { writeAll } from '../report/disk.ts';
import type { Prepared } from '../workspace/preparation.ts';
import { holdsSecrets } from './stage-secrets.ts';

/** What is known of an attempt when its stage is about to start. */
export interface RecordHead {
  readonly job: Job;
  readonly prepared: Prepared;
  readonly timeoutMs: number;
  /** What is masked in its output, of its secrets and tokens. */
  readonly masked?: readonly string[] | undefined;
  /** With what its log begins: what was told of its preparation. */
  readonly remarks?: readonly string[] | undefined;
}

/** An attempt that an earlier process has left. */
export interface EarlierAttempt extends RecordHead {
  /** The session whose lease has listed it last. */
  readonly holder: string;
  readonly notes: StageNotes;
  /** Read as it is asked for, once. */
  readonly output: Iterable<StagePiece>;
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
  /** For attempts with secrets; made when one needs it. Absent: those end with their process. */
  readonly memory: string | undefined;
  /** Whether it is there, and nobody else's. */
  readonly makeMemory?: (() => boolean) | undefined;
}

export const NO_RECORDS: AttemptRecords = { earlier: [], open: () => undefined, close: () => {} };

/** Of notes and of what the masks of an output hide, beside what the log keeps. */
const NOTES_BYTES_MAX = 16 * 1024 * 1024;
const MEMORY_BYTES_MAX = 32 * 1024 * 1024;
/** No less than a log holds of an output's end. */
const END_BYTES_MAX = 8 * 1024 * 1024;
/** Between the name of a record and the number of the file with its end. */
const END = '.end-';
/** Of what was noted under one name, as it is said again where the output's end goes on in another file. */
const NOTES_AGAIN_MAX = 100;
/** Read at a time; a line is seldom longer. */
const READ_BYTES = 1024;
const LINE_FEED = 0x0a;

/** A line of the file; `bytes` of output follow it. */
interface RecordLine {
  readonly boot?: string;
  readonly head?: RecordHead;
  readonly holder?: string;
  /** Besides what the head says. */
  readonly masked?: readonly string[];
  readonly notes?: Readonly<Record<string, string>>;
  /** Begins a file of the output's end: its number, each higher than that before, and what was noted before. */
  readonly end?: number;
  readonly again?: Readonly<Record<string, readonly string[]>>;
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
    const { disk, memory } = folders;
    const all = [disk, ...(memory !== undefined && existsSync(memory) && this.#hasMemory() ? [memory] : [])];
    this.earlier = all.flatMap((folder) => this.#readAll(folder));
  }

  #readAll(folder: string): EarlierAttempt[] {
    const names = readdirSync(folder);
    const records = names.filter((name) => !name.includes(END));
    for (const name of names)
      if (name.includes(END) && !records.includes(name.slice(0, name.indexOf(END)))) rmSync(join(folder, name));
    return records.flatMap((name) => this.#read(join(folder, name)) ?? []);
  }

  open(job: Job): AttemptRecord | undefined {
    const isSecret = holdsSecrets(job);
    const folder = isSecret ? this.#folders.memory : this.#folders.disk;
    if (folder === undefined || (isSecret && !this.#hasMemory())) return undefined;
    return new AttemptRecord(
      join(folder, `${job.session}-${job.credit}`),
      this.#boot,
      this.#log,
      this.#bytesMaxIn(folder),
    );
  }

  #hasMemory(): boolean {
    return this.#folders.makeMemory?.() ?? true;
  }

  #bytesMaxIn(folder: string): number {
    return folder === this.#folders.memory ? MEMORY_BYTES_MAX : Infinity;
  }

  /** Null, and the file is gone: it cannot be taken up. */
  #read(path: string): EarlierAttempt | null {
    try {
      const read = readRecord(path);
      if (read !== null && read.boot === this.#boot) {
        const record = new AttemptRecord(path, this.#boot, this.#log, this.#bytesMaxIn(dirname(path)), read);
        return { ...read, record };
      }
    } catch (error) {
      this.#log.warn({ err: error }, 'the record of a stage attempt cannot be read; it is not taken up again');
    }
    for (const each of [path, ...endsOf(path)]) rmSync(each, { recursive: true, force: true });
    return null;
  }
}

/** A file that grows. */
interface Growing {
  readonly path: string;
  fd: number | null;
  /** Of what is whole. */
  length: number;
}

export class AttemptRecord implements StageRecord {
  readonly #main: Growing;
  readonly #ends: readonly [Growing, Growing];
  readonly #boot: string;
  readonly #log: Log;
  readonly #bytesMax: number;
  #logBytesMax: number;
  #head: RecordLine | null = null;
  /** How many files of the output's end were begun; 0: none. */
  #turns: number;
  /** The last notes under each name. */
  readonly #notes: Map<string, readonly string[]>;
  #hasGap: () => boolean = () => false;
  #isOver = false;

  /** `earlier`: what an earlier process has written whole. */
  constructor(path: string, boot: string, log: Log, bytesMax: number, earlier?: ReadRecord) {
    this.#main = { path, fd: null, length: earlier?.length ?? 0 };
    const [one, other] = endsOf(path);
    const lengths = earlier?.endLengths ?? [0, 0];
    this.#ends = [
      { path: one, fd: null, length: lengths[0] },
      { path: other, fd: null, length: lengths[1] },
    ];
    this.#boot = boot;
    this.#log = log;
    this.#bytesMax = bytesMax;
    this.#logBytesMax = earlier?.job.logBytesMax ?? 0;
    this.#turns = earlier?.turns ?? 0;
    this.#notes = new Map([...(earlier?.notes ?? [])].map(([name, values]) => [name, values.slice(-NOTES_AGAIN_MAX)]));
  }

  /** Written with the first note: an attempt of whose stage nothing was noted has none. */
  begin(head: RecordHead): void {
    this.#head = { boot: this.#boot, head, holder: head.job.session };
    this.#logBytesMax = head.job.logBytesMax;
  }

  /** Whether the log has a gap by now: then only the end of what follows counts (ATTEMPT-RECORD-2). */
  askForGap(hasGap: () => boolean): void {
    this.#hasGap = hasGap;
  }

  keep(notes: Readonly<Record<string, string>>, output?: StagePiece): void {
    for (const [name, value] of Object.entries(notes))
      this.#notes.set(name, [...(this.#notes.get(name) ?? []), value].slice(-NOTES_AGAIN_MAX));
    const line = { notes, ...(output === undefined ? {} : { stream: output.stream, bytes: output.bytes.length }) };
    // Remarks are never left out, and neither is what is to be masked.
    const isEnd = output !== undefined && output.stream !== 'system' && output.stream !== 'masks';
    if (isEnd && (this.#turns > 0 || this.#hasGap())) this.#appendToEnd(line, output.bytes);
    else this.#append(line, output?.bytes);
  }

  /** Masked as well from here on: they were nowhere before. */
  mask(values: readonly string[]): void {
    const head = this.#head?.head;
    if (this.#main.length > 0) this.#append({ masked: values });
    else if (head !== undefined)
      this.#head = { ...this.#head, head: { ...head, masked: [...(head.masked ?? []), ...values] } };
  }

  /** The lease of this session lists it from now on. */
  heldBy(session: string): void {
    this.#append({ holder: session });
  }

  /** Its result is on disk, or it comes to none. Idempotent. */
  remove(): void {
    this.#isOver = true;
    for (const file of [this.#main, ...this.#ends]) {
      if (file.fd !== null) closeSync(file.fd);
      file.fd = null;
      if (file.length > 0) rmSync(file.path, { force: true });
    }
  }

  #append(line: RecordLine, bytes: Uint8Array = new Uint8Array()): void {
    const head = this.#main.length === 0 && this.#head !== null ? `${JSON.stringify(this.#head)}\n` : '';
    const text = Buffer.concat([Buffer.from(`${head}${JSON.stringify(line)}\n`), bytes]);
    const isTooLong = this.#main.length + text.length > Math.min(this.#bytesMax, this.#logBytesMax + NOTES_BYTES_MAX);
    if (isTooLong) this.remove();
    else this.#write(this.#main, text);
  }

  #appendToEnd(line: RecordLine, bytes: Uint8Array): void {
    const text = Buffer.concat([Buffer.from(`${JSON.stringify(line)}\n`), bytes]);
    const last = this.#ends[this.#turns % 2 === 0 ? 0 : 1];
    if (this.#turns > 0 && last.length + text.length <= END_BYTES_MAX) return this.#write(last, text);
    this.#turns += 1;
    const next = this.#ends[this.#turns % 2 === 0 ? 0 : 1];
    next.length = 0;
    const again = Object.fromEntries(this.#notes);
    this.#write(next, Buffer.concat([Buffer.from(`${JSON.stringify({ end: this.#turns, again })}\n`), text]));
  }

  #write(file: Growing, text: Uint8Array): void {
    if (this.#isOver) return;
    try {
      const isOpen = file.fd !== null;
      file.fd ??= openSync(file.path, file.length === 0 ? 'w' : 'r+', 0o600);
      // What a kill has cut short is not there, nor what stood in a file that begins anew.
      if (!isOpen || file.length === 0) ftruncateSync(file.fd, file.length);
      writeAll(file.fd, text, file.length);
      file.length += text.length;
    } catch (error) {
      this.#log.warn({ err: error }, 'a stage attempt could not be recorded: a restart of the runner ends it');
      this.remove();
    }
  }
}

function endsOf(path: string): readonly [string, string] {
  return [`${path}${END}0`, `${path}${END}1`];
}

interface ReadRecord extends Omit<EarlierAttempt, 'record'> {
  readonly boot: string;
  readonly length: number;
  readonly endLengths: readonly [number, number];
  readonly turns: number;
}

/** Null: there is no head. What stands behind the last whole line of a file is none of it. */
function readRecord(path: string): ReadRecord | null {
  let first: RecordLine | undefined;
  let holder = '';
  const masked: string[] = [];
  const notes = new Map<string, string[]>();
  const note = (name: string, values: readonly string[]): void => {
    const before = notes.get(name);
    if (before === undefined) notes.set(name, [...values]);
    else before.push(...values);
  };
  const lengthOf = (file: string): number => {
    let length = 0;
    for (const { line, next } of linesOf(file)) {
      first ??= line;
      holder = line.holder ?? holder;
      masked.push(...(line.head?.masked ?? line.masked ?? []));
      for (const [name, values] of Object.entries(line.again ?? {})) note(name, values);
      for (const [name, value] of Object.entries(line.notes ?? {})) note(name, [value]);
      length = next;
    }
    return length;
  };
  const length = lengthOf(path);
  if (first?.head === undefined) return null;
  const ends = endsOf(path)
    .map((file, at) => ({ file, at, turn: [...firstOf(file)][0]?.line.end ?? 0 }))
    .filter(({ turn }) => turn > 0)
    .toSorted((a, b) => a.turn - b.turn);
  const endLengths: [number, number] = [0, 0];
  for (const { file, at } of ends) endLengths[at === 0 ? 0 : 1] = lengthOf(file);
  const files = [path, ...ends.map(({ file }) => file)];
  const turns = ends.at(-1)?.turn ?? 0;
  return {
    ...first.head,
    masked,
    boot: first.boot ?? '',
    holder,
    notes,
    output: piecesOf(files),
    length,
    endLengths,
    turns,
  };
}

function* piecesOf(files: readonly string[]): Generator<StagePiece, void> {
  for (const file of files)
    for (const { line, read } of linesOf(file))
      if (line.stream !== undefined) yield { stream: line.stream, bytes: read() };
}

function* firstOf(file: string): Generator<WholeLine, void> {
  for (const line of linesOf(file)) {
    yield line;
    return;
  }
}

interface WholeLine {
  readonly line: RecordLine;
  /** Of the output behind it; before the next line is asked for. */
  readonly read: () => Buffer;
  /** Where the next one begins. */
  readonly next: number;
}

/** The whole lines of a file that may not be there. */
function* linesOf(file: string): Generator<WholeLine, void> {
  if (!existsSync(file)) return;
  const fd = openSync(file, 'r');
  try {
    const { size } = fstatSync(fd);
    const part = (from: number, length: number): Buffer => {
      const buffer = Buffer.alloc(Math.max(0, Math.min(length, size - from)));
      for (let done = 0; done < buffer.length;) {
        const taken = readSync(fd, buffer, done, buffer.length - done, from + done);
        if (taken === 0) break;
        done += taken;
      }
      return buffer;
    };
    for (let at = 0; at < size;) {
      let text = part(at, READ_BYTES);
      while (!text.includes(LINE_FEED) && at + text.length < size) text = part(at, text.length * 2);
      const end = text.indexOf(LINE_FEED);
      if (end < 0) return;
      const line = JSON.parse(text.toString('utf8', 0, end)) as RecordLine;
      const begin = at + end + 1;
      const next = begin + (line.bytes ?? 0);
      if (next > size) return;
      yield { line, read: () => part(begin, next - begin), next };
      at = next;
    }
  } finally {
    closeSync(fd);
  }
}
