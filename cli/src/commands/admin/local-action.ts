/** An action of administration that no server is asked for. */
import type { CommandContext, ParsedArguments } from '../../command-line/command.ts';

export type LocalAction = (name: string, args: ParsedArguments, context: CommandContext) => Promise<void>;
