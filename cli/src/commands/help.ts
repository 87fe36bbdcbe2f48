import type { Command } from '../command-line/command.ts';
import { commandNamed, unknownCommand, type CommandEntry } from '../command-line/command-list.ts';
import { EXIT } from '../process/errors.ts';
import { helpOf, overview } from '../command-line/help-text.ts';
import { version } from '../process/version.ts';

/** The help of all commands. */
export const helpCommand = (commands: readonly CommandEntry[]): Command => ({
  spec: {
    name: 'help',
    usage: '[command]',
    about:
      'Explains a command: what it does, its options, examples and exit codes. Without a name it lists the commands.',
    options: {},
    positionals: { min: 0, max: 2, missing: '' },
    examples: [['penstock help trigger', 'everything about `penstock trigger`; the same as `penstock trigger --help`']],
    exitCodes: [
      [EXIT.success, 'shown'],
      [EXIT.usage, 'there is no such command'],
    ],
  },
  async run({ positionals }, { terminal }) {
    const name = positionals.length === 0 ? undefined : positionals.join(' ');
    if (name === undefined) {
      terminal.print(
        overview(
          version(),
          commands.filter((entry) => !entry.name.includes(' ')).map((entry) => [entry.name, entry.summary] as const),
        ),
      );
      return EXIT.success;
    }
    const entry = commandNamed(commands, name);
    if (entry === undefined) throw unknownCommand(commands, name);
    terminal.print(helpOf((await entry.load()).spec));
    return EXIT.success;
  },
});
