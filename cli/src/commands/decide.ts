/** `penstock approve` and `penstock reject`: what somebody says at a stage that waits for it. */
import type { GateDecision } from '@penstock/run';
import type { Command, CommandContext, ParsedArguments } from '../command-line/command.ts';
import { printableText } from '../output/printable-text.ts';
import { EXIT, UsageError } from '../process/errors.ts';
import { decideStage } from '../server/gates.ts';
import { serverClient } from '../server/http-client.ts';
import { readCredentials } from '../server/read-credentials.ts';
import { runIdOf } from '../server/run-id.ts';
import { serverAddress } from '../server/server-address.ts';
import { SERVER_ENVIRONMENT, SERVER_EXIT_CODES, SERVER_OPTIONS } from '../server/server-options.ts';

const EXAMPLE_RUN = '0192f0c1-2b3c-7abc-8def-0123456789ab';

export const approveCommand = commandOf('approve', 'approved', 'Approves a stage that waits for approval.');
export const rejectCommand = commandOf(
  'reject',
  'rejected',
  'Rejects a stage that waits for approval: it ends FAILED, whoever has approved it.',
);

function commandOf(name: 'approve' | 'reject', decision: GateDecision, about: string): Command {
  return {
    spec: {
      name,
      usage: '[options] <run> <stage>',
      about: `${about} Saying the same again changes nothing while it waits.`,
      options: {
        comment: { type: 'string', short: 'm', value: 'TEXT', text: 'What is kept and shown with it.' },
        json: { type: 'boolean', text: 'The stage as JSON, on one line.' },
        ...SERVER_OPTIONS,
      },
      positionals: {
        min: 2,
        max: 2,
        missing: `${name} which stage? Give the run and the stage: penstock ${name} <run> <stage>`,
      },
      environment: SERVER_ENVIRONMENT,
      examples: [
        [`penstock ${name} ${EXAMPLE_RUN} promote`, `${name} the stage 'promote'`],
        [`penstock ${name} -m 'seen on staging' ${EXAMPLE_RUN} promote`, 'and say why'],
      ],
      exitCodes: [
        [EXIT.success, `the stage is ${decision}, or waits for more people`],
        [EXIT.usage, 'wrong usage'],
        ...SERVER_EXIT_CODES,
      ],
    },
    run: (args, context) => decide(name, decision, args, context),
  };
}

async function decide(
  name: string,
  decision: GateDecision,
  args: ParsedArguments,
  context: CommandContext,
): Promise<number> {
  const runId = runIdOf(args, name);
  const [, stage] = args.positionals;
  if (stage === undefined) throw new UsageError('the name of the stage is missing', name);
  const server = serverAddress(args.text('server'), context.env);
  const client = serverClient(server, await readCredentials(args, context, server));
  const decided = await decideStage(client, { decision, runId, stage, comment: args.text('comment') });
  if (args.flag('json')) context.terminal.print(`${JSON.stringify(decided)}\n`);
  else {
    const { status, approved, quorum } = decided;
    const rest = status === 'QUEUED' ? `, ${approved} of ${quorum} have approved it` : '';
    context.terminal.print(`The stage '${printableText(stage)}' is ${printableText(status)}${rest}.\n`);
  }
  return EXIT.success;
}
