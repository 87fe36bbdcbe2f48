/** What a command is: its arguments as data, from which both the parser and the help text are made, and what it does. */
import type { Terminal } from '../output/terminal.ts';

export interface OptionSpec {
  readonly type: 'boolean' | 'string';
  readonly short?: string;
  /** How the help names the value. */
  readonly value?: string;
  readonly text: string;
}

export interface CommandSpec {
  readonly name: string;
  /** After the name: `[options] [file]`. */
  readonly usage: string;
  /** Two sentences: what it does, and what one should know about that. */
  readonly about: string;
  readonly options: Readonly<Record<string, OptionSpec>>;
  /** How many arguments beside the options it takes. */
  readonly positionals: { readonly min: number; readonly max: number; readonly missing: string };
  readonly environment?: readonly (readonly [name: string, meaning: string])[];
  readonly examples: readonly (readonly [command: string, meaning: string])[];
  readonly exitCodes: readonly (readonly [code: number, meaning: string])[];
}

/** What the process was given; commands touch no global of it but through this. */
export interface CommandContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly terminal: Terminal;
}

export interface Command {
  readonly spec: CommandSpec;
  /** Resolves to the exit code; a CommandError becomes one line. */
  run(args: ParsedArguments, context: CommandContext): Promise<number>;
}

export interface ParsedArguments {
  readonly positionals: readonly string[];
  /** True where the switch was given. */
  flag(name: string): boolean;
  /** The option's value; undefined where it was not given. */
  text(name: string): string | undefined;
  /** All values of an option that may be given several times, in their order. */
  texts(name: string): readonly string[];
  /** The arguments as they came. */
  readonly raw: readonly string[];
}
