/** The public face of the package: CI files of other engines as pipeline files. */
export { FORMATS, migrate, type Format, type Migration } from './migrate.ts';
export { UnreadableSource } from './source.ts';
