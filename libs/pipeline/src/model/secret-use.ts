/** What a stage gets of a secret: a variable that holds its value, or the path of a file that does. */
import { PIPELINE_LIMITS } from './limits.ts';
export interface SecretUse {
  readonly variable: string;
  /** Of the secret. */
  readonly name: string;
  /** The variable holds the path of a file in memory. */
  readonly file: boolean;
}

const NAME = /^[A-Z_][A-Z0-9_]*$/;

/** Whether a secret can be called so. */
export function isSecretName(text: string): boolean {
  return NAME.test(text) && text.length <= PIPELINE_LIMITS.secretNameLengthMax;
}
