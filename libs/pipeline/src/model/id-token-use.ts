/** An id token that a stage gets: a variable with the path of a file that holds it. */
export interface IdTokenUse {
  /** Who is to take it. */
  readonly audience: string;
  readonly variable: string;
}
