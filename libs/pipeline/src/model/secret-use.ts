/** What a stage gets of a secret: a variable that holds its value, or the path of a file that does. */
export interface SecretUse {
  readonly variable: string;
  /** Of the secret. */
  readonly name: string;
  /** The variable holds the path of a file in memory. */
  readonly file: boolean;
}
