/** The errors of the command: each is one line for a person, with the remedy in it. */
import { causesOf, TaggedError } from '@penstock/errors';

/** Exit codes, the same for every command. 128 and a signal's number where one ended it. */
export const EXIT = {
  success: 0,
  /** The run failed, or Penstock itself did. */
  failure: 1,
  /** Wrong usage, or a pipeline file with problems. */
  usage: 2,
  /** The server cannot be reached, is not available now, or is none of ours: another try later may do. */
  unreached: 3,
  /** The server, or what stands for it here, says no. */
  refused: 4,
  interrupted: 130,
  terminated: 143,
  /** Whoever read our output has gone: what a shell shows for SIGPIPE. */
  brokenPipe: 141,
} as const;

export abstract class CommandError extends TaggedError {
  abstract readonly exitCode: number;
}

/** The arguments make no sense; `command` names the help to look at, absent for the command as a whole. */
export class UsageError extends CommandError {
  readonly tag = 'UsageError';
  readonly exitCode = EXIT.usage;
  readonly command: string | undefined;

  constructor(message: string, command?: string) {
    super(message);
    this.command = command;
  }
}

/** The pipeline file is not there or cannot be read. */
export class FileError extends CommandError {
  readonly tag = 'FileError';
  readonly exitCode = EXIT.usage;
}

/** What was asked for cannot be written where it was to go. */
export class NotWritten extends CommandError {
  readonly tag = 'NotWritten';
  readonly exitCode = EXIT.failure;
}

/** The pipeline file has problems, which have been shown already. */
export class RefusedFile extends CommandError {
  readonly tag = 'RefusedFile';
  readonly exitCode: number;

  constructor(message: string, exitCode: number) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** What was asked of a server did not come about. */
export abstract class ServerError extends CommandError {}

/** The server cannot be reached, is not available now, or answers what no server of ours would. */
export class ServerUnreached extends ServerError {
  readonly tag = 'ServerUnreached';
  readonly exitCode = EXIT.unreached;
}

/** It does not answer at this moment, which a moment later may be over: a wrong address or another server never is. */
export class ServerAway extends ServerUnreached {}

/** It says that it has failed itself. */
export class ServerFault extends ServerAway {}

/** The server refuses the caller or what it asks for. */
export class ServerRefused extends ServerError {
  readonly tag = 'ServerRefused';
  readonly exitCode = EXIT.refused;
}

/** A stage's folder cannot be made or entered: the stage fails, not the command. */
export class WorkspaceProblem extends CommandError {
  readonly tag = 'WorkspaceProblem';
  readonly exitCode = EXIT.failure;
}

/** The reader of our output has gone; nothing is said about it, for nobody reads it. */
export class OutputClosed extends CommandError {
  readonly tag = 'OutputClosed';
  readonly exitCode = EXIT.brokenPipe;
}

/** One line for a terminal; with PENSTOCK_DEBUG the stack and the causes. */
export function explain(error: unknown, debug: boolean): string {
  if (debug) return error instanceof Error ? stackOf(error) : String(error);
  if (error instanceof CommandError) return error.message;
  const message = error instanceof Error ? error.message : String(error);
  return `internal error: ${message.split('\n', 1)[0] ?? ''} (set PENSTOCK_DEBUG=1 to see where)`;
}

function stackOf(error: Error): string {
  const stacks = causesOf(error).map((each) => (each instanceof Error ? (each.stack ?? each.message) : String(each)));
  return stacks.join('\ncaused by ');
}
