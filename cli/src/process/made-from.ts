/**
 * Which sources the program was put together from, where it was: bootstrap/command-build.js has it here. Sources that are run by themselves
 * have no such name, for each of them may change at any time.
 */
export const MADE_FROM: string | undefined = undefined;
