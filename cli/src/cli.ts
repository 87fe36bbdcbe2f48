/** Turns the arguments of the process into an exit code: chooses the command, shows help, turns errors into one line. */
import { readArguments } from './command-line/arguments.ts';
import type { CommandContext } from './command-line/command.ts';
import { commandNamed, unknownCommand } from './command-line/command-list.ts';
import { COMMANDS } from './commands.ts';
import { CommandError, EXIT, explain, OutputClosed, RefusedFile, UsageError } from './process/errors.ts';
import { printableLines } from './output/printable-text.ts';

export async function runCli(argv: readonly string[], context: CommandContext): Promise<number> {
  try {
    return await dispatch(argv, context);
  } catch (error) {
    if (error instanceof OutputClosed) return error.exitCode;
    const debug = (context.env['PENSTOCK_DEBUG'] ?? '') !== '';
    // A refused file's text is an excerpt with our own colours, harmless as it is.
    if (error instanceof RefusedFile) context.terminal.note(error.message);
    else context.terminal.note(`penstock: ${debug ? explain(error, true) : printableLines(explain(error, false))}`);
    if (error instanceof UsageError)
      context.terminal.note(`Try 'penstock help${error.command === undefined ? '' : ` ${error.command}`}'.`);
    return error instanceof CommandError ? error.exitCode : EXIT.failure;
  }
}

async function dispatch(argv: readonly string[], context: CommandContext): Promise<number> {
  const [first, ...others] = argv;
  if (first === undefined) return await dispatch(['help'], context);
  if (first === '--help' || first === '-h')
    return await dispatch(['help', ...others.filter((word) => !word.startsWith('-'))], context);
  if (first === '--version' || first === '-V' || first === '-v') return await dispatch(['version'], context);
  // `extension init`: a command of a group has a name of two words.
  const inGroup = others[0] === undefined ? undefined : commandNamed(COMMANDS, `${first} ${others[0]}`);
  const entry = inGroup ?? commandNamed(COMMANDS, first);
  if (entry === undefined) throw unknownCommand(COMMANDS, first);
  const rest = inGroup === undefined ? others : others.slice(1);
  const command = await entry.load();
  const args = readArguments(command.spec, rest);
  if (args.flag('help')) return await dispatch(['help', ...entry.name.split(' ')], context);
  return await command.run(args, context);
}
