/**
 * A commit that is small enough to be held in memory, with everything in its tree: its files are read, and its workspaces written,
 * without a process. What is in it follows from its id alone.
 *
 * What git would judge by rules of its own is not small: attributes that change files on their way, names that one system or
 * another takes for something else, kinds of files from old times. git then does it.
 */
import type { ObjectInfo, Objects } from './objects.ts';
import { packedOf, packOf, type Pack, type PackedObject } from './pack.ts';

export interface CommitEntry {
  readonly path: string;
  readonly kind: 'file' | 'program' | 'link' | 'submodule';
  readonly id: string;
  /** Empty of a submodule. */
  readonly content: Uint8Array;
}

export interface SmallCommit {
  readonly id: string;
  readonly message: string;
  /** Sorted as git sorts them in its index. */
  readonly entries: readonly CommitEntry[];
  /** All folders, each after the one that it is in. */
  readonly folders: readonly string[];
  readonly pack: Pick<Pack, 'name' | 'pack' | 'index'>;
  /** What it takes of memory. */
  readonly bytes: number;
}

const FILES_MAX = 500;
const TREES_MAX = 250;
const BYTES_MAX = 2 * 1024 ** 2;
/** Beside names and ids of each object. */
const ENTRY_BYTES = 300;
/** No backslash, no colon, no control character, nothing outside ASCII, and neither `.git` nor a short form of it. */
const PLAIN_NAME = /^(?!\.{1,2}$)(?!\.?git(?:$|[~. ]))(?!.*[. ]$)[ !#-.0-9;=@-[\]-{}~]{1,255}$/iu;
const ATTRIBUTES = '.gitattributes';
const NOTHING = new Uint8Array();
const KINDS: Readonly<Record<string, CommitEntry['kind'] | 'folder'>> = {
  '100644': 'file',
  '100755': 'program',
  '120000': 'link',
  '160000': 'submodule',
  '40000': 'folder',
};

interface TreeEntry {
  readonly path: string;
  readonly kind: CommitEntry['kind'] | 'folder';
  readonly id: string;
}

/** Objects by their ids, as they were read for another commit of the same mirror. */
export type KnownObjects = ReadonlyMap<string, PackedObject>;

export interface ReadCommit {
  readonly commit: SmallCommit;
  /** For the next one, which has most of them too. In the commit's own memory. */
  readonly objects: KnownObjects;
}

/** Null: it is not small. Rejects where an object is missing, or git does not answer. What is `known` is not read again. */
export async function readSmallCommit(
  objects: Objects,
  commit: string,
  known: KnownObjects = new Map(),
): Promise<ReadCommit | null> {
  if (commit.length !== 40) return null;
  let bytes = 0;
  const infoOf = ({ id, type, content }: PackedObject): ObjectInfo => ({ id, type, size: content.length });
  const contentOf = async (info: ObjectInfo): Promise<Uint8Array> =>
    known.get(info.id)?.content ?? (await objects.content(info));
  const packed = new Map<string, PackedObject>();
  const pack = (id: string, type: PackedObject['type'], content: Uint8Array): void =>
    void packed.set(id, known.get(id) ?? { id, type, content, packed: packedOf(type, content) });
  /** Null: together with what was read before they are too large. */
  const infosOf = async (ids: readonly string[]): Promise<readonly ObjectInfo[] | null> => {
    const infos = await Promise.all(
      ids.map((id) => {
        const object = known.get(id);
        return object === undefined ? objects.info(id) : infoOf(object);
      }),
    );
    const found = infos.filter((info) => info !== null);
    if (found.length < infos.length) throw new Error('an object of the commit is missing');
    bytes += found.reduce((sum, { size }) => sum + size, 0);
    return bytes <= BYTES_MAX ? found : null;
  };
  const [info] = (await infosOf([commit])) ?? [];
  if (info?.type !== 'commit') return null;
  const raw = await objects.content(info);
  const root = /^tree ([0-9a-f]{40})\n/u.exec(raw.toString('latin1', 0, 50))?.[1];
  if (root === undefined) return null;

  pack(commit, 'commit', raw);
  const folders: string[] = [];
  const found: TreeEntry[] = [];
  for (let level = [{ path: '', id: root }]; level.length > 0;) {
    if (folders.length + level.length > TREES_MAX) return null;
    const trees = await infosOf(level.map(({ id }) => id));
    if (trees === null) return null;
    const contents = await Promise.all(trees.map((tree) => contentOf(tree)));
    const next: { path: string; id: string }[] = [];
    for (const [index, content] of contents.entries()) {
      const { path: folder = '', id = '' } = level[index] ?? {};
      const entries = entriesOf(asBuffer(content), folder);
      if (entries === null) return null;
      pack(id, 'tree', content);
      if (folder !== '') folders.push(folder);
      for (const entry of entries) (entry.kind === 'folder' ? next : found).push(entry as TreeEntry);
    }
    if (found.length > FILES_MAX) return null;
    level = next;
  }

  const ids = [...new Set(found.filter(({ kind }) => kind !== 'submodule').map(({ id }) => id))];
  const blobs = await infosOf(ids);
  if (blobs === null) return null;
  for (const [index, content] of (await Promise.all(blobs.map((blob) => contentOf(blob)))).entries())
    pack(ids[index] ?? '', 'blob', content);
  const whole = packOf([...packed.values()]);
  const [packBytes = NOTHING, indexBytes = NOTHING, ...contents] = shared([
    whole.pack,
    whole.index,
    ...[...packed.values()].map(({ content }) => content),
  ]);
  const kept = new Map(
    [...packed.values()].map((object, index) => {
      const offset = whole.offsets[index] ?? 0;
      const { length } = object.packed.bytes;
      const own = { bytes: packBytes.subarray(offset, offset + length), crc: object.packed.crc };
      return [object.id, { ...object, content: contents[index] ?? NOTHING, packed: own }];
    }),
  );
  const entries = found
    .map(({ path, kind, id }): CommitEntry => ({
      path,
      kind: kind === 'folder' ? 'file' : kind,
      id,
      content: kind === 'submodule' ? NOTHING : (kept.get(id)?.content ?? NOTHING),
    }))
    .toSorted((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path)));
  // Two blobs of one id are written twice.
  if (entries.reduce((sum, { content }) => sum + content.length, 0) > BYTES_MAX) return null;
  const body = raw.indexOf('\n\n');
  return {
    commit: {
      id: commit,
      message: body === -1 ? '' : raw.toString('utf8', body + 2),
      entries,
      folders,
      pack: { name: whole.name, pack: packBytes, index: indexBytes },
      bytes: bytes + packBytes.length + indexBytes.length + (entries.length + 2 * packed.size) * ENTRY_BYTES,
    },
    objects: kept,
  };
}

/** Without a copy. */
function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}

/** In memory that the thread which writes workspaces sees without a copy; nobody writes there. */
function shared(parts: readonly Uint8Array[]): Uint8Array[] {
  const memory = new SharedArrayBuffer(parts.reduce((sum, { length }) => sum + length, 0));
  let end = 0;
  return parts.map((part) => {
    const view = new Uint8Array(memory, end, part.length);
    view.set(part);
    end += part.length;
    return view;
  });
}

/** Null: it holds something that git is to judge. */
function entriesOf(tree: Buffer, folder: string): TreeEntry[] | null {
  const entries: TreeEntry[] = [];
  const names = new Set<string>();
  for (let at = 0; at < tree.length;) {
    const blank = tree.indexOf(32, at);
    const end = tree.indexOf(0, blank);
    if (blank === -1 || end === -1 || end + 20 >= tree.length + 1) return null;
    const kind = KINDS[tree.toString('latin1', at, blank)];
    const name = tree.toString('latin1', blank + 1, end);
    if (kind === undefined || !PLAIN_NAME.test(name) || name.toLowerCase() === ATTRIBUTES || names.has(name))
      return null;
    names.add(name);
    const path = folder === '' ? name : `${folder}/${name}`;
    entries.push({ path, kind, id: tree.toString('hex', end + 1, end + 21) });
    at = end + 21;
  }
  return entries;
}
