export { BadFile, GitError, type GitErrorCode } from './errors.ts';
export { checkCloneUrl, checkCommit, type CloneAddress, type GitPolicy } from './policy.ts';
export { openMirrors, type FetchedCommit, type FetchRequest, type Mirrors, type MirrorsOptions } from './mirrors.ts';
export type { CommitFile } from './commit-files.ts';
