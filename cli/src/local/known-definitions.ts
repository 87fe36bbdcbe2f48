/**
 * What the pipeline files of earlier local runs mean, in the user's cache folder: to read 1,000 stages takes a process that has just started
 * longer than to run fifty of them. One entry for each place of a file, named by it.
 *
 * KNOWNFILES-1. An entry holds all that decides what a file means (its text, what the machine lacks, which program has read it) and is
 *    taken only where each of these is the same.
 * KNOWNFILES-2. It is there as a whole or not at all, and only one that nobody but this user can have written is taken.
 * KNOWNFILES-3. At most `ENTRIES_MAX` are kept, the one that was written longest ago goes first. None is ever needed.
 */
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { deserialize, serialize } from 'node:v8';
import { adoptForeign, type Lacking, type PipelineDefinition } from '@penstock/pipeline';

/** What a file is read with. */
export interface ReadFile {
  /** Of the file, whole. */
  readonly path: string;
  readonly text: string;
  readonly lacking: Lacking;
}

interface Entry extends ReadFile {
  readonly program: string;
  readonly definition: PipelineDefinition;
}

const ENTRIES_MAX = 64;
/** 2,000 stages of an ordinary file take a fifth of it. */
const ENTRY_BYTES_MAX = 2 * 1024 * 1024;
const WRITTEN_BY_OTHERS = 0o022;

export class KnownDefinitions {
  readonly #folder: string;
  readonly #program: string;
  readonly #entryBytesMax: number;

  /** `program`: what has read the files, and would read them the same. */
  constructor(folder: string, program: string, entryBytesMax = ENTRY_BYTES_MAX) {
    this.#folder = folder;
    this.#program = program;
    this.#entryBytesMax = entryBytesMax;
  }

  /** Undefined: the file is to be read. */
  find(file: ReadFile): PipelineDefinition | undefined {
    try {
      const entry = deserialize(this.#read(this.#placeOf(file.path))) as Entry;
      if (entry.program !== this.#program || entry.path !== file.path || entry.text !== file.text) return undefined;
      if (textOf(entry.lacking) !== textOf(file.lacking)) return undefined;
      const { definition } = entry;
      adoptForeign(file.text, { lacking: file.lacking }, { ok: true, definition });
      return definition;
    } catch {
      // There is none, or not a whole one, or one of another Node.
      return undefined;
    }
  }

  /** Says nothing where there is no room: the next run reads the file again. */
  keep(file: ReadFile, definition: PipelineDefinition): void {
    const { path, text, lacking } = file;
    const entry: Entry = { program: this.#program, path, text, lacking, definition };
    const place = this.#placeOf(path);
    // In containers all processes may have one number, and what one of them has left half stays there for a while.
    const incoming = `${place}-${process.pid}-${Math.trunc(Math.random() * 2 ** 32)}`;
    try {
      const bytes = serialize(entry);
      if (bytes.length > this.#entryBytesMax) return;
      // Not `recursive`: below /proc, where no folder can be made, Node would try for ever.
      for (const folder of [dirname(dirname(this.#folder)), dirname(this.#folder), this.#folder])
        if (!existsSync(folder)) mkdirSync(folder, { mode: 0o700 });
      writeFileSync(incoming, bytes, { mode: 0o600, flag: 'wx' });
      renameSync(incoming, place);
      this.#removeOld();
    } catch {
      // Half of one, which is not named like an entry and goes as one.
    }
  }

  #placeOf(path: string): string {
    return join(this.#folder, nameOf(path));
  }

  #read(place: string): Buffer {
    const fd = openSync(place, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const stat = fstatSync(fd);
      const isOurs = stat.uid === process.geteuid?.() && (stat.mode & WRITTEN_BY_OTHERS) === 0;
      if (!isOurs || !stat.isFile() || stat.size > this.#entryBytesMax) throw new RangeError('no entry of ours');
      return readFileSync(fd);
    } finally {
      closeSync(fd);
    }
  }

  /** Also what was not renamed. */
  #removeOld(): void {
    const names = readdirSync(this.#folder);
    if (names.length <= ENTRIES_MAX) return;
    const written = names.map((name) => ({ name, at: statSync(join(this.#folder, name)).mtimeMs }));
    const oldest = written.toSorted((one, other) => one.at - other.at).slice(0, names.length - ENTRIES_MAX);
    for (const { name } of oldest) rmSync(join(this.#folder, name), { force: true });
  }
}

function textOf(lacking: Lacking): string {
  return JSON.stringify([...lacking]);
}

/** Two paths may have one name: then one takes the other's place. */
function nameOf(path: string): string {
  let [low, high] = [0x811c9dc5, path.length];
  for (let at = 0; at < path.length; at += 1) {
    low = Math.imul(low ^ path.charCodeAt(at), 0x01000193);
    high = Math.imul(high ^ low, 0x85ebca6b) ^ (high >>> 13);
  }
  return [low, high].map((half) => (half >>> 0).toString(16).padStart(8, '0')).join('');
}
