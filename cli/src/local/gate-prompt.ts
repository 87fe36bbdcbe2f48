/** Asks whoever sits at the terminal about the gates of a local run, one after the other. */
import { createInterface } from 'node:readline';
import type { GateDecision } from '@penstock/run';
import { printableText } from '../output/printable-text.ts';
import type { Terminal } from '../output/terminal.ts';

interface LocalDecision {
  readonly decision: GateDecision;
  readonly comment?: string | undefined;
}

/** Resolves to undefined where the run ended before anything was said. */
export type AskGate = (
  stage: string,
  message: string | undefined,
  signal: AbortSignal,
) => Promise<LocalDecision | undefined>;

const YES = /^\s*(?:y|yes|approve|ok)\s*$/i;
const NO = /^\s*(?:n|no|reject)\s*$/i;

export function gatePrompt(input: NodeJS.ReadStream, terminal: Pick<Terminal, 'note'>, approvesAll: boolean): AskGate {
  let before: Promise<unknown> = Promise.resolve();
  return (stage, message, signal) => {
    if (approvesAll) return Promise.resolve({ decision: 'approved', comment: '--yes' });
    if (!input.isTTY)
      return Promise.resolve({ decision: 'rejected', comment: 'no terminal to ask at; --yes approves' });
    const asked = before.then(() => ask(input, terminal, question(stage, message), signal));
    before = asked;
    return asked;
  };
}

function question(stage: string, message: string | undefined): string {
  const about = message === undefined ? '' : `: ${printableText(message)}`;
  return `penstock: '${printableText(stage)}' waits for approval${about}\npenstock: approve it? (yes or no)`;
}

/** Lines as the terminal gives them: in raw mode ^C would not be a signal any more. */
function ask(
  input: NodeJS.ReadStream,
  terminal: Pick<Terminal, 'note'>,
  text: string,
  signal: AbortSignal,
): Promise<LocalDecision | undefined> {
  const { promise, resolve } = Promise.withResolvers<LocalDecision | undefined>();
  if (signal.aborted) return Promise.resolve(undefined);
  const lines = createInterface({ input, terminal: false });
  const leave = (): void => resolve(undefined);
  signal.addEventListener('abort', leave, { once: true });
  lines.on('line', (line) => {
    if (YES.test(line)) resolve({ decision: 'approved' });
    else if (NO.test(line)) resolve({ decision: 'rejected' });
    else terminal.note("penstock: say 'yes' or 'no'");
  });
  lines.once('close', () => resolve({ decision: 'rejected', comment: 'the input ended without an answer' }));
  terminal.note(text);
  return promise.finally(() => {
    signal.removeEventListener('abort', leave);
    lines.close();
    input.pause();
  });
}
