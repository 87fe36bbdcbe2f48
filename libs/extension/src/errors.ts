/** What can be wrong with a package, and with keeping one. */

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
export class PackageRefused extends Error {
  readonly tag = 'PackageRefused';
  readonly fault: PackageFault;

  constructor(fault: PackageFault, message: string, options?: ErrorOptions) {
    super(message, options);
    this.fault = fault;
  }

  override get name(): string {
    return this.tag;
  }
}

/** The folder of the cache cannot take the package: everything in it was used a short while ago. Try again later. */
export class CacheFull extends Error {
  readonly tag = 'CacheFull';
  override get name(): string {
    return this.tag;
  }
}

/** `.pipeline.lock` is not what `penstock lock` writes. */
export class BadLock extends Error {
  readonly tag = 'BadLock';
  override get name(): string {
    return this.tag;
  }
}

/** A file that should hold a key holds none. */
export class BadKey extends Error {
  readonly tag = 'BadKey';
  override get name(): string {
    return this.tag;
  }
}
