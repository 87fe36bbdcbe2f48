import { actionOf } from '../command-line/actions.ts';
import type { Command } from '../command-line/command.ts';
import type { CommandEntry } from '../command-line/command-list.ts';
import { SHELLS } from '../command-line/completion.ts';
import { EXIT } from '../process/errors.ts';

/** Completes all commands. */
export const completionCommand = (commands: readonly CommandEntry[]): Command => ({
  spec: {
    name: 'completion',
    usage: `<${Object.keys(SHELLS).join('|')}>`,
    about:
      'Prints a script with which a shell completes commands, their actions, options and files. It is made from what this version knows: print it again after an update.',
    options: {},
    positionals: { min: 1, max: 1, missing: `for which shell? ${Object.keys(SHELLS).join(', ')}` },
    examples: [
      ['source <(penstock completion bash)', 'in ~/.bashrc'],
      ['source <(penstock completion zsh)', 'in ~/.zshrc, after compinit'],
      ['penstock completion fish > ~/.config/fish/completions/penstock.fish', 'once'],
    ],
    exitCodes: [
      [EXIT.success, 'printed'],
      [EXIT.usage, 'there is no such shell'],
    ],
  },
  async run({ positionals: [shell = ''] }, { terminal }) {
    const script = actionOf('completion', shell, SHELLS);
    const all = await Promise.all(
      commands.map(async ({ name, summary, load }) => ({ name, summary, spec: (await load()).spec })),
    );
    terminal.print(script(all));
    return EXIT.success;
  },
});
