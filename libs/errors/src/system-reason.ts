/** Why the operating system did not do something to a file, for a person: without codes and names of calls. */
const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'no permission',
  EDQUOT: "the user's room on the disk is used up",
  EEXIST: 'something is there already',
  EIO: 'the disk does not answer as it should',
  EISDIR: 'it is a folder',
  ELOOP: 'its links lead in a circle',
  EMFILE: 'too many files are open',
  ENAMETOOLONG: 'its name is too long',
  ENFILE: 'too many files are open on this machine',
  ENOENT: 'it is not there',
  ENOSPC: 'the disk is full',
  ENOTDIR: 'a part of its path is no folder',
  ENOTEMPTY: 'it is not empty',
  EPERM: 'no permission',
  EROFS: 'the disk is read-only',
};

/** The message of the error itself where it is none of the system's. */
export function systemReason(error: unknown): string {
  const code = (error as { readonly code?: unknown } | null)?.code;
  const known = typeof code === 'string' ? REASONS[code] : undefined;
  return known ?? (error instanceof Error ? error.message : String(error));
}
