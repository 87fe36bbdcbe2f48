import type { Command } from '../command-line/command.ts';
import { EXIT } from '../process/errors.ts';
import { version } from '../process/version.ts';

export const versionCommand: Command = {
  spec: {
    name: 'version',
    usage: '',
    about: 'Says which version of Penstock this is. The server of the same checkout answers the same at `GET /`.',
    options: {},
    positionals: { min: 0, max: 0, missing: '' },
    examples: [['penstock version', 'one line on standard output']],
    exitCodes: [[EXIT.success, 'always']],
  },
  async run(_args, { terminal }) {
    terminal.print(`penstock ${version()}\n`);
    return EXIT.success;
  },
};
