/** What keeps others from writing. */
const OTHERS_MAY_NOT_WRITE = 0o022;

/**
 * What is made for stages is entered and read by the users that they run as, whatever the shell or the unit leaves of it that has
 * started this process (`umask 077`). What is nobody's but ours has a mode of its own, or lies in a folder that has one. Who lets
 * others write is left to it (`umask 002`).
 */
export function letStagesIn(): void {
  // Nobody else's stages have other users.
  if (process.getuid?.() !== 0) return;
  const given = process.umask(OTHERS_MAY_NOT_WRITE);
  process.umask(given & OTHERS_MAY_NOT_WRITE);
}
