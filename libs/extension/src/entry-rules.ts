/**
 * Which entries a package may have. Only plain files and folders under plain names: what a name or a kind could do
 * outside of the folder that the package is unpacked into is refused by its own message, before anything is written.
 *
 * 1. A path is judged as it stands in the archive; nothing is normalised into something harmless.
 * 2. No two paths may be the same file anywhere: not by repetition, by case, by Unicode's forms, nor as file and folder.
 */
import { printableName } from './printable-name.ts';
import { PackageRefused } from './errors.ts';
import { PACKAGE_LIMITS } from './package-limits.ts';

export interface EntryHeader {
  readonly path: string;
  /** What tar calls it: `file`, `directory`, `symlink`, … */
  readonly kind: string;
  readonly mode: number;
}

/** Characters that are not seen, or that turn the direction of what follows. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Cn}\p{Zl}\p{Zp}\uFFFD]|(?! )\p{Zs}/u;
const SPECIAL_BITS = 0o7000;

export class EntryRules {
  /** Every path and every folder above one, by its form without case. */
  readonly #seen = new Map<string, { readonly path: string; readonly isFolder: boolean; readonly isListed: boolean }>();
  #files = 0;

  get files(): number {
    return this.#files;
  }

  /** The path within the package, without a slash at its end; the empty text for the package's own folder. Throws PackageRefused. */
  accept(header: EntryHeader): string {
    const path = checkedPath(header.path);
    const shown = printableName(header.path);
    switch (header.kind) {
      case 'file':
      case 'contiguous-file':
      case 'directory':
        break;
      case 'symlink':
      case 'link':
        throw new PackageRefused('link', `the package holds a link: ${shown}`);
      case 'character-device':
      case 'block-device':
      case 'fifo':
        throw new PackageRefused('device', `the package holds a device or a pipe: ${shown}`);
      default:
        throw new PackageRefused('kind', `the package holds an entry that is neither a file nor a folder: ${shown}`);
    }
    if ((header.mode & SPECIAL_BITS) !== 0)
      throw new PackageRefused(
        'special_bits',
        `the package holds an entry with the setuid, setgid or sticky bit: ${shown}`,
      );
    this.#files += 1;
    if (this.#files > PACKAGE_LIMITS.filesMax)
      throw new PackageRefused(
        'files',
        `the package holds more than ${PACKAGE_LIMITS.filesMax.toLocaleString('en')} entries`,
      );
    if (path !== '') this.#place(path, header.kind === 'directory');
    return path;
  }

  #place(path: string, isFolder: boolean): void {
    for (let slash = path.indexOf('/'); slash !== -1; slash = path.indexOf('/', slash + 1))
      this.#claim(path.slice(0, slash), true, false);
    this.#claim(path, isFolder, true);
  }

  #claim(path: string, isFolder: boolean, isListed: boolean): void {
    const form = path.normalize('NFKC').toLowerCase();
    const known = this.#seen.get(form);
    const shown = printableName(path);
    if (known === undefined || (known.path === path && known.isFolder && isFolder && !(known.isListed && isListed))) {
      this.#seen.set(form, { path, isFolder, isListed: isListed || known?.isListed === true });
    } else if (known.path !== path) {
      throw new PackageRefused(
        'look_alike',
        `the package holds two names that differ only in case or in look-alike characters: ${printableName(known.path)} and ${shown}`,
      );
    } else
      throw new PackageRefused(
        'duplicate',
        known.isFolder === isFolder
          ? `the package holds ${shown} twice`
          : `the package holds ${shown} as a file and as a folder`,
      );
  }
}

function checkedPath(raw: string): string {
  const shown = printableName(raw);
  if (Buffer.byteLength(raw) > PACKAGE_LIMITS.pathBytesMax) {
    // The usual reason for such a path, and the one that tells the author more.
    if (depthOf(raw) > PACKAGE_LIMITS.depthMax) throw tooDeep(shown);
    throw new PackageRefused(
      'path_length',
      `the package holds a path of more than ${PACKAGE_LIMITS.pathBytesMax} bytes: ${shown}`,
    );
  }
  if (raw.startsWith('/') || /^[A-Za-z]:/.test(raw))
    throw new PackageRefused('absolute', `the package holds an absolute path: ${shown}`);
  // `tar czf x.tgz .` writes all names so.
  const path = raw
    .replace(/^(\.\/)+/, '')
    .replace(/^\.$/, '')
    .replace(/\/$/, '');
  if (path === '') return path;
  const segments = path.split('/');
  if (segments.includes('..'))
    throw new PackageRefused('traversal', `the package holds a path that leaves its folder: ${shown}`);
  if (path.includes('\\'))
    throw new PackageRefused(
      'name',
      `the package holds a name with a backslash, which is a folder's end elsewhere: ${shown}`,
    );
  if (segments.some((segment) => segment === '' || segment === '.'))
    throw new PackageRefused('name', `the package holds a path with an empty part: ${shown}`);
  if (INVISIBLE.test(path))
    throw new PackageRefused(
      'name',
      `the package holds a name with characters that cannot be seen, or that are no text: ${shown}`,
    );
  if (path.normalize('NFC') !== path)
    throw new PackageRefused(
      'look_alike',
      `the package holds a name that can be written in another way and look the same: ${shown}`,
    );
  if (segments.length > PACKAGE_LIMITS.depthMax) throw tooDeep(shown);
  if (segments.some((segment) => Buffer.byteLength(segment) > PACKAGE_LIMITS.nameBytesMax))
    throw new PackageRefused(
      'path_length',
      `the package holds a name of more than ${PACKAGE_LIMITS.nameBytesMax} bytes: ${shown}`,
    );
  return path;
}

function depthOf(path: string): number {
  let depth = 1;
  for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) depth += 1;
  return depth;
}

function tooDeep(shown: string): PackageRefused {
  return new PackageRefused(
    'depth',
    `the package holds folders more than ${PACKAGE_LIMITS.depthMax} levels deep: ${shown}`,
  );
}
