export type { CloneCredential } from './credentials.ts';
export { BadFile, GitError, type GitErrorCode } from './errors.ts';
export { classOfAddress } from './ip-addresses.ts';
export { checkCloneUrl } from './policy.ts';
export type { MirrorCache } from './mirrors.ts';
