/** What can be wrong with a package, and with keeping one. */
import { TaggedError } from '@penstock/errors';

export type PackageFault =
  | 'format'
  | 'bytes'
  | 'ratio'
  | 'unpacked_bytes'
  | 'files'
  | 'depth'
  | 'path_length'
  | 'traversal'
  | 'absolute'
  | 'name'
  | 'link'
  | 'device'
  | 'special_bits'
  | 'kind'
  | 'duplicate'
  | 'look_alike'
  | 'manifest'
  | 'hash';

/** The package is refused: its message is for the one who made it, and names the entry. Nothing was written, or is left. */
export class PackageRefused extends TaggedError {
  readonly tag = 'PackageRefused';
  readonly fault: PackageFault;

  constructor(fault: PackageFault, message: string, options?: ErrorOptions) {
    super(message, options);
    this.fault = fault;
  }
}

/** The folder of the cache cannot take the package: everything in it was used a short while ago. Try again later. */
export class CacheFull extends TaggedError {
  readonly tag = 'CacheFull';
}

/** `.pipeline.lock` is not what `penstock lock` writes. */
export class BadLock extends TaggedError {
  readonly tag = 'BadLock';
}

/** A file that should hold a key holds none. */
export class BadKey extends TaggedError {
  readonly tag = 'BadKey';
}
