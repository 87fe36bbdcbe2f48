/** The part of `oidc-provider` that is used here; it brings no types of its own. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http';

  export interface Interaction {
    readonly uid: string;
    readonly prompt: { readonly name: string };
    readonly params: Readonly<Record<string, unknown>>;
    readonly session?: { readonly accountId: string; readonly uid: string } | undefined;
  }

  /** What a browser is logged in as. */
  export interface Session {
    accountId?: string | undefined;
    authorizations?: Readonly<Record<string, unknown>> | undefined;
    persist(): Promise<unknown>;
  }

  export interface Grant {
    addOIDCScope(scope: string): void;
    save(): Promise<string>;
  }

  export interface Context {
    readonly res: ServerResponse;
    status: number;
    type: string;
    body: unknown;
  }

  export class Provider {
    constructor(issuer: string, configuration: Readonly<Record<string, unknown>>);
    readonly Session: { findByUid(uid: string): Promise<Session | undefined> };
    readonly Grant: new (owner: { readonly accountId: string; readonly clientId: string }) => Grant;
    /** Around all that the library does with a request. */
    use(step: (context: Context, next: () => Promise<void>) => Promise<void>): this;
    callback(): (request: IncomingMessage, response: ServerResponse) => Promise<void>;
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Interaction>;
    /** Answers where the browser is to go. */
    interactionResult(
      request: IncomingMessage,
      response: ServerResponse,
      result: Readonly<Record<string, unknown>>,
      options?: { readonly mergeWithLastSubmission?: boolean },
    ): Promise<string>;
    on(event: string, listener: (...details: unknown[]) => void): this;
  }
}
