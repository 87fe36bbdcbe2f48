export { runCli } from './cli.ts';
export type { CommandContext } from './command-line/command.ts';
export { Terminal } from './output/terminal.ts';
