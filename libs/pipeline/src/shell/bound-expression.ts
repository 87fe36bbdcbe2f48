/** An expression of a script. */
export interface BoundExpression {
  /** The variable that carries its value. */
  readonly name: string;
  /** As it stands in the file. */
  readonly source: string;
  /** The value comes from outside: neither the file nor Penstock decides what it can be. */
  readonly isOpen: boolean;
  /** The value is a whole number that stands in the file: whoever reads it as code reads a number. */
  readonly isNumber: boolean;
}
