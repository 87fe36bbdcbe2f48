export { runCli } from './cli.ts';
export type { CommandContext } from './command.ts';
export { Terminal } from './output/terminal.ts';
