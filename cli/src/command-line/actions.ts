/** The second word of commands that have several actions: `penstock token create`. */
import { printableText } from '../output/printable-text.ts';
import { nearestWord } from './nearest.ts';
import { UsageError } from '../process/errors.ts';

/** Throws `UsageError`, with the nearest one and all of them, where the command has no such action. */
export function actionOf<Action>(command: string, word: string, actions: Readonly<Record<string, Action>>): Action {
  const action = Object.hasOwn(actions, word) ? actions[word] : undefined;
  if (action !== undefined) return action;
  const names = Object.keys(actions);
  const close = nearestWord(word, names);
  const meant = close === undefined ? '' : `, did you mean '${command} ${close}'?`;
  throw new UsageError(
    `there is no command '${command} ${printableText(word)}'${meant}\nThe commands are ${names.map((name) => `${command} ${name}`).join(', ')}.`,
    command,
  );
}
