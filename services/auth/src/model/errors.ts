/** What auth refuses in words of its own (the REST bodies of the device and web flows), and how an identity provider fails. */
import { TaggedError } from '@penstock/errors';

/** Answered as it is: `{error, message}` with this status, `fields` beside them. */
export class AuthRefusal extends TaggedError {
  readonly tag = 'AuthRefusal';
  readonly status: number;
  readonly code: string;
  readonly fields: Readonly<Record<string, unknown>>;

  constructor(status: number, code: string, message: string, fields: Readonly<Record<string, unknown>> = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.fields = fields;
  }
}

/** The provider knows the account, and `SERVICE_ALLOWED_LOGINS` does not name it. */
export class LoginNotAllowed extends Error {
  readonly tag = 'LoginNotAllowed';
  override readonly name = 'LoginNotAllowed';
}

/** No answer, or one that makes no sense: worth trying again. */
export class ProviderUnavailable extends TaggedError {
  readonly tag = 'ProviderUnavailable';
}

/** The provider does not take what it was shown: a code that was used before, an account it refuses. */
export class ProviderRefused extends TaggedError {
  readonly tag = 'ProviderRefused';
  /** The provider's own word for it: `invalid_grant`, `bad_verification_code`. */
  readonly code: string;

  constructor(code: string, options?: ErrorOptions) {
    super(`the identity provider refused: ${code}`, options);
    this.code = code;
  }
}
