/** What a server is shown so that it knows who asks. */
export interface ServerCredentials {
  readonly token: string | undefined;
  /** Where it came from, for messages. */
  readonly source: string;
  /** The token of this moment, where one does not last as long as the command may. */
  current?(): Promise<string>;
}
