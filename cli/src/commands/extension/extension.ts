import type { Command } from '../../command-line/command.ts';
import type { CommandEntry } from '../../command-line/command-list.ts';
import { EXIT, UsageError } from '../../process/errors.ts';
import { groupOverview } from '../../command-line/help-text.ts';
import { nearestWord } from '../../command-line/nearest.ts';
import { printableText } from '../../output/printable-text.ts';

const NAMES = ['init', 'check', 'test', 'pack', 'publish', 'yank', 'search', 'info', 'keygen', 'sign'];

/** The help of the group; `commands` are those in it. */
export const extensionCommand = (commands: readonly CommandEntry[]): Command => ({
  spec: {
    name: 'extension',
    usage: `<${NAMES.join('|')}>`,
    about:
      'An extension is a command, or a few stages, that pipelines use by name: `uses: build/node@^1`. It is a folder with an extension.yaml, which says what it ' +
      'takes and gives; docs/extensions.md describes it. Each of these is a command of its own, with its own help.',
    options: {},
    positionals: { min: 0, max: Number.MAX_SAFE_INTEGER, missing: '' },
    examples: [
      ['penstock extension init utility/hello', 'begin one'],
      ['penstock extension test hello who=you', 'run it'],
      ['penstock extension publish hello', 'give it to others'],
      ['penstock help extension publish', 'everything about one of them'],
    ],
    exitCodes: [
      [EXIT.success, 'shown'],
      [EXIT.usage, 'there is no such command'],
    ],
  },
  async run({ positionals: [name] }, { terminal }) {
    if (name === undefined) {
      terminal.print(
        groupOverview(
          'extension',
          commands.map((entry) => [entry.name, entry.summary] as const),
        ),
      );
      return EXIT.success;
    }
    const close = nearestWord(name, NAMES);
    throw new UsageError(
      `there is no command 'extension ${printableText(name)}'${close === undefined ? '' : `, did you mean 'extension ${close}'?`}\nThe commands are ${NAMES.join(', ')}.`,
      'extension',
    );
  },
});
