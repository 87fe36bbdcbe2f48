/**
 * What is made for stages is entered and read by the users that they run as, whatever the shell or the unit leaves of it that has
 * started this process (`umask 077`). What is nobody's but ours has a mode of its own, or lies in a folder that has one.
 */
export function letStagesIn(): void {
  process.umask(0o022);
}
